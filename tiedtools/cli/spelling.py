"""Spell settings of the library as options, and options as settings: `drop_out=.5` is --drop-out .5."""

import re
from typing import Any

# Option -> (its setting, which has another name, {value of the option: value of the setting}).
SHORTCUTS: dict[str, tuple[str, dict[Any, Any]]] = {
    "tie": ("tying", {True: "tied", False: "untied"}),
    "tie_signs": ("tying", {True: "signs"}),
    "tie_linear": ("tying", {True: "linear"}),
    "no_output_bias": ("output_bias", {True: False}),
    "cbow": ("architecture", {1: "cbow", 0: "skipgram"}),
}


def as_typed(name: str, value: Any) -> str:
    """Return an option of SHORTCUTS and its value as typed on the command line."""
    option = name.replace("_", "-")
    return f"--{'no-' if value is False else ''}{option}{'' if isinstance(value, bool) else f' {value}'}"


TYPED = {
    (setting, str(meant)): as_typed(name, value)
    for name, (setting, values) in SHORTCUTS.items()
    for value, meant in values.items()
}
PHRASES = {("tying", "untied"): "neither --tie nor --tie-linear", ("output_bias", "True"): "an output bias"}
# Settings translated for every command, even one without these options.
OF_OTHERS = "resume", "save_model", "checkpoint", "log_json", "errors"


def spelled(message: str, command: Any) -> str:
    """Return `message` with backticked names of the click command's parameters replaced by their options."""
    names = {parameter.name: parameter.opts[0] for parameter in command.params if parameter.opts[0].startswith("-")}

    def translate(match: re.Match[str]) -> str:
        name, value = match[1], match[2] and match[2].strip("'")
        if name not in names and name not in OF_OTHERS:
            return (TYPED | PHRASES).get((name, value), match[0])
        return as_option(name, value, names.get(name))

    return re.sub(r"`(\w+)(?:=([^`]*))?`", translate, message)


def as_option(name: str, value: Any = None, option: str | None = None) -> str:
    """Return a setting as typed, with its value unless that is None; `option`: its option if it has another name."""
    option_name = option or f"--{name.replace('_', '-')}"
    return option_name if value is None else f"{option_name} {value}"


def as_options(settings: dict[str, Any]) -> str:
    """Return settings, a dict by name, as typed on the command line."""
    options = []
    for name, value in settings.items():
        if isinstance(value, bool):
            options.append(as_option(name if value else f"no_{name}"))
        else:
            number = f"{value:g}" if isinstance(value, float) else value
            options.append(TYPED.get((name, value)) or as_option(name, number))
    return " ".join(options)
