"""`python -m tiedtools`, and the `tiedtools` command."""

import io
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
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]  # names that are no UTF-8
    if isinstance(sys.stdout.buffer, io.RawIOBase):
        # With PYTHONUNBUFFERED: what a full disk or a pipe does not take would be lost, and nobody would be told.
        raw, how = io.BufferedWriter(sys.stdout.buffer), (sys.stdout.encoding, sys.stdout.errors)
        sys.stdout = io.TextIOWrapper(raw, *how, line_buffering=True)
    try:
        interrupts.install()
        from tiedtools.cli import cli

        cli(prog_name="tiedtools")
    except KeyboardInterrupt as stop:  # one too many, or one that came before the command line was read
        print("tiedtools: interrupted", file=sys.stderr)
        sys.exit(128 + stop.args[0])
    finally:
        interrupts.ignore()


if __name__ == "__main__":
    main()
