"""Unusual file names for the fuzzer, which a message or a reader may get wrong."""

import os

STEMS = [
    *("v", " ", "a b", " x ", "-", "--help", "-rf", "a:in", "b:out:in", "a:3: x", "C:", "a;b", "%s %d", "{} {0}"),
    *("'", '"', "it's", "`id`", "$(id)", "*", "#", "~", "[a]", "a\nb", "a\r\nb", "\t", "\x1b[31m", "\x7f", "caf\u00e9"),
    *("\u65e5\u672c\u8a9e", "\u202eabc", "\u00a0", "\u2028", "\ufeff", "\U0001f600", "x" * 238, "\u00e9" * 115),
    *("\\n", os.fsdecode(b"\xff\xfe"), os.fsdecode(b"caf\xe9")),
]  # fmt: skip
EXTENSIONS = ["", ".npz", ".npy", ".gz", ".xz", ".tsv", ".safetensors", ".txt", ".words", ".run.json", ".in", ":in"]


def renamed(rng, name, files):
    """Return (name, files) with new names; a single file may get an extension that does not match its content."""
    stem = rng.choice(STEMS)
    new = {old: stem + old.removeprefix(name[0]) for old in files}
    if len(files) == 1 and rng.random() < 0.3:
        new[name] = stem + rng.choice(EXTENSIONS)
    return new[name], {new[old]: data for old, data in files.items()}
