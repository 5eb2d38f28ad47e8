"""The one exception that is the user's to mend."""


class TiedtoolsError(Exception):
    """A mistake in the input or the options, told in one line: the file, the line number and the way out.

    The command line prints the message and exits with status 1; a traceback is for our mistakes.
    """
