"""Helpers of many tests: paths, parsed command lines, model files, and errors judged by their structure."""

import os
from pathlib import Path

import click
import pytest

import tiedtools as tt
from tiedtools.base.errors import TiedtoolsError
from tiedtools.cli import cli
from tiedtools.files import modelfile
from tiedtools.text.sources import open_source

HELPERS = Path(__file__).resolve().parent
ROOT = HELPERS.parents[1]


def regex_or_skip():
    """Return the module regex; skip the test, or the module that calls this, without its Unicode word boundaries."""
    return pytest.importorskip("regex", "2026.11.18", reason='needs pip install ".[text]", with Python 3.11 or later')


def context_of(name, *args):
    """Return the context of subcommand `name` with `args`, as `tiedtools` makes it."""
    parent = click.Context(cli, **cli.context_settings)  # click keeps the options of --help that it sees first
    return cli.get_command(parent, name).make_context(name, [str(arg) for arg in args], parent=parent)


def in_one_line(message, *named):
    """Check that a message is one printable line with `named`, file names, settings, and values, in this order."""
    assert message.isprintable() and message.strip(), message
    position = 0
    for name in map(str, named):
        assert name in message[position:], f"{name!r} is not in {message[position:]!r}"
        position = message.index(name, position) + len(name)


def refused(call, *named, kind=TiedtoolsError):
    """Check that `call` raises an error of class `kind`, in one line that names all of `named`, in this order."""
    with pytest.raises(kind) as error:
        call()
    in_one_line(str(error.value), *named)


def content(source):
    """Return all bytes of a text, decompressed."""
    with open_source(source) as file:
        return file.read()


def save(model, path):
    with open(path, "wb") as file:
        model.save(file)
    return path


def make(kind, **settings):
    """Return the estimator of a kind of model."""
    made = {"w2v": tt.Word2Vec, "nmt": tt.Translator}.get(kind, lambda **settings: tt.LanguageModel(kind, **settings))
    return made(**settings)


def rewrite(path, change):
    """Apply change(header, words, arrays) to a model file or checkpoint."""
    header, words, arrays = modelfile.load(path)
    change(header, words, arrays)
    os.truncate(path, 0)
    with open(path, "ab") as file:  # as a shell's >> opens it
        modelfile.save(file, header["kind"], header["config"], words, arrays)


# Ways to corrupt the model file of any language model: functions that modify header, words and arrays.
MODEL_DAMAGES = {
    "counts missing": lambda header, words, arrays: arrays.pop("counts"),
    "array cut": lambda header, words, arrays: arrays.update({"emb_in": arrays["emb_in"][:-1]}),
    "one vector for all": lambda header, words, arrays: arrays.update({"emb_in": arrays["emb_in"][:1]}),
    "word missing": lambda header, words, arrays: words.pop(),
    "a space in a word": lambda header, words, arrays: words.append(f"{words.pop()} b"),
    "unknown option": lambda header, words, arrays: header["config"].update(dropconnect=0.5),
}
