"""The one exception that is the user's to mend."""


class TiedtoolsError(Exception):
    """A mistake in the input or the options, told in one line: the file, the line number and the way out.

    The command line prints the message and exits with status 1; a traceback is for our mistakes.
    """


def refuse(mistakes):
    """Raise TiedtoolsError for the first that is so of `mistakes`, pairs (what to do about it, whether it is so)."""
    for message, wrong in mistakes:
        if wrong:
            raise TiedtoolsError(message)
