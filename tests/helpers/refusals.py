"""Judgement of errors by their structure: class, one printable line, and the names it must give, in order."""

import pytest

from tiedtools.base.errors import TiedtoolsError


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
