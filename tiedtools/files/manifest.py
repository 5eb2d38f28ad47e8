"""Run manifests: JSON files beside outputs that record how to reproduce them and verify the result."""

import importlib.metadata
import json
import platform
import sys
from typing import Any, BinaryIO

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores, cpu_setting, processor_name
from tiedtools.base.version import __version__

SUFFIX = ".run.json"
START = b'{\n  "tiedtools": '
# Options that name an output.
OUTPUTS = "output", "save-model", "save-vocab", "rnnlm", "checkpoint", "log-json", "manifest"
FIGURES = "loss", "train_ppl", "valid_ppl", "valid_bleu", "test_ppl"
# Types of the manifest values that a rerun reads. [type]: a list; {key: type}: a dict with at least these keys.
FORM = {
    "tiedtools": str,
    "argv": [str],
    "directory": str,
    "stopped": str | None,
    "threads": int,
    "inputs": [dict],
    "outputs": [{"option": str}],
    "options": dict.fromkeys((*OUTPUTS, "precision"), str | None),
    "settings": {"precision": str | None},
    "environment": dict,
    **dict.fromkeys(FIGURES, float | int | None),
}
ORIGIN = {"path": str, "sha256": str}


def environment() -> dict[str, Any]:
    """Return the versions and the hardware that the results of a run may depend on."""
    return dict(
        tiedtools=__version__,
        python=platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "numba", "llvmlite")},
        platform=platform.platform(),
        byteorder=sys.byteorder,
        processor=processor_name(),
        cores=available_cores(),
        TIEDTOOLS_CPU=cpu_setting(),
    )


def write(file: BinaryIO, manifest: dict[str, Any]) -> None:
    """Write a manifest, a JSON-serializable dict, to a binary file."""
    text = ",\n".join(f"  {dumps(name)}: {pretty(value)}" for name, value in manifest.items())
    # Non-UTF-8 bytes of a path are written as JSON escapes.
    file.write(f"{{\n{text}\n}}\n".encode("utf-8", "backslashreplace"))


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def pretty(value: Any) -> str:
    """Format a value as JSON, with one line per dict item or per dict in a list."""
    if isinstance(value, dict):
        items, brackets = [f"{dumps(name)}: {dumps(item)}" for name, item in value.items()], "{}"
    elif value and isinstance(value, list) and isinstance(value[0], dict):
        items, brackets = [dumps(item) for item in value], "[]"
    else:
        return dumps(value)
    return f"{brackets[0]}\n    " + ",\n    ".join(items) + f"\n  {brackets[1]}"


def is_manifest(path: str) -> bool:
    """Return whether a file starts like a manifest. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(len(START)) == START


def loads(data: bytes, path: str) -> dict[str, Any]:
    """Parse a manifest from bytes; `path` names the file in errors. Raises TiedtoolsError if it is not a manifest."""
    try:
        manifest: dict[str, Any] = json.loads(data)
        wrong = [name for name, form in FORM.items() if not fits(manifest.get(name), form)]
        if manifest.get("origin") is not None and not fits(manifest["origin"], ORIGIN):
            wrong.append("origin")
    except (ValueError, AttributeError, RecursionError):
        wrong = ["JSON"]
    if wrong:
        raise TiedtoolsError(
            f"{path}: not a run manifest, or corrupt (no {wrong[0]}); give the {SUFFIX} file of an output"
        )
    return manifest


def fits(value: Any, form: Any) -> bool:
    """Return whether a JSON value has a type, in the notation of FORM."""
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(item, form[0]) for item in value)
    if isinstance(form, dict):
        return isinstance(value, dict) and all(fits(value.get(name), inner) for name, inner in form.items())
    return isinstance(value, form)
