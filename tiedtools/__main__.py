"""`python -m tiedtools`, and the `tiedtools` command."""

import os
import sys

from tiedtools import interrupts


def main():
    # A stream that the shell has closed is None here, and its number would go to the next file opened.
    if sys.stdin is None:
        sys.stdin = open(os.devnull)
    closed = sys.stdout is None
    if closed:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    if closed:
        sys.exit("tiedtools: standard output is closed; send it to /dev/null instead")
    interrupts.install()
    from tiedtools.cli import cli

    cli(prog_name="tiedtools")


if __name__ == "__main__":
    main()
