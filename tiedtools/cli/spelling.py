"""Translate names of settings in the library's messages to option spellings: `drop_out=.5` to --drop-out .5."""

import re

VALUES = {
    ("tying", "untied"): "neither --tie nor --tie-linear",
    ("tying", "tied"): "--tie",
    ("tying", "signs"): "--tie-signs",
    ("tying", "linear"): "--tie-linear",
    ("architecture", "cbow"): "--cbow 1",
    ("architecture", "skipgram"): "--cbow 0",
    ("output_bias", "True"): "an output bias",
    ("output_bias", "False"): "--no-output-bias",
}
OF_OTHERS = (
    "resume",
    "save_model",
    "checkpoint",
    "log_json",
    "errors",
)  # translated for every command, even one without these options


def spelled(message, command):
    """Return `message` with backticked names of the click command's parameters replaced by their options."""
    names = {parameter.name: parameter.opts[0] for parameter in command.params if parameter.opts[0].startswith("-")}

    def translated(found):
        name, value = found[1], found[2] and found[2].strip("'")
        if name not in names and name not in OF_OTHERS:
            return VALUES.get((name, value), found[0])
        option = names.get(name, f"--{name.replace('_', '-')}")
        return option if value is None else f"{option} {value}"

    return re.sub(r"`(\w+)(?:=([^`]*))?`", translated, message)
