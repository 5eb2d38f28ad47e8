"""The exceptions that are the user's to mend, and what they say."""


class TiedtoolsError(Exception):
    """A mistake in the input or the options, told in one line: the file, the line number and the way out.

    The command line prints the message and exits with status 1; a traceback is for our mistakes.
    """


class Diverged(TiedtoolsError):
    """Training broke down: a number that is not finite, or beyond all use. What the model then has, its `go` says."""


def unreadable(path, error):
    """The TiedtoolsError for what cannot be read, by an exception that says why."""
    return TiedtoolsError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}")


def quoted(text):
    """What stands in a file, a string or bytes, fit for a message of one line."""
    text = repr(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    return text if len(text) <= 60 else text[:57] + "...'"


def brief(error):
    """What an exception of others says, fit for the same."""
    text = " ".join(ascii(error if isinstance(error, str) else str(error))[1:-1].split())
    return text if len(text) <= 200 else text[:197] + "..."


def refuse(mistakes):
    """Raise TiedtoolsError for the first that is so of `mistakes`, pairs (what to do about it, whether it is so)."""
    for message, wrong in mistakes:
        if wrong:
            raise TiedtoolsError(message)
