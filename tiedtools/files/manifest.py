"""Run manifests: how an output came to be, in JSON beside it: enough to make it again and see that it is the same."""

import importlib.metadata
import json
import platform
import sys

from tiedtools import __version__
from tiedtools.cores import available_cores, processor_name
from tiedtools.errors import TiedtoolsError
from tiedtools.processor import wanted

SUFFIX = ".run.json"
START = b'{\n  "tiedtools": '
OUTPUTS = "output", "save-model", "save-vocab", "rnnlm", "checkpoint", "log-json", "manifest"  # options that name one
FIGURES = "loss", "train_ppl", "valid_ppl", "test_ppl"
# What a rerun takes of a manifest: types; in [], of each item; in {}, of some.
FORM = {
    "tiedtools": str,
    "argv": [str],
    "directory": str,
    "stopped": str | None,
    "threads": int,
    "inputs": [dict],
    "outputs": [{"option": str}],
    "options": dict.fromkeys(OUTPUTS, str | None),
    "environment": dict,
    **dict.fromkeys(FIGURES, float | int | None),
}
ORIGIN = {"path": str, "sha256": str}


def environment():
    """What else the numbers of a run may depend on, a dict."""
    return dict(
        tiedtools=__version__,
        python=platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "numba", "llvmlite")},
        platform=platform.platform(),
        byteorder=sys.byteorder,
        processor=processor_name(),
        cores=available_cores(),
        TIEDTOOLS_CPU=wanted(),
    )


def write(file, manifest):
    """Write a manifest, a dict that JSON can hold, to a binary file."""
    text = ",\n".join(f"  {dumps(name)}: {pretty(value)}" for name, value in manifest.items())
    # Bytes of a path that are no UTF-8 come out as JSON itself writes them.
    file.write(f"{{\n{text}\n}}\n".encode("utf-8", "backslashreplace"))


def dumps(value):
    return json.dumps(value, ensure_ascii=False)


def pretty(value):
    """JSON with a line for each item of a dict, and for each dict in a list."""
    if isinstance(value, dict):
        items, brackets = [f"{dumps(name)}: {dumps(item)}" for name, item in value.items()], "{}"
    elif value and isinstance(value, list) and isinstance(value[0], dict):
        items, brackets = [dumps(item) for item in value], "[]"
    else:
        return dumps(value)
    return f"{brackets[0]}\n    " + ",\n    ".join(items) + f"\n  {brackets[1]}"


def is_manifest(path):
    """Whether a file begins as those that `write` writes. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(len(START)) == START


def loads(data, path):
    """The manifest in the bytes of a file, which `path` names. Raises TiedtoolsError where there is none."""
    try:
        manifest = json.loads(data)
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


def fits(value, form):
    """Whether a value of JSON has a form, as FORM tells it."""
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(item, form[0]) for item in value)
    if isinstance(form, dict):
        return isinstance(value, dict) and all(fits(value.get(name), inner) for name, inner in form.items())
    return isinstance(value, form)
