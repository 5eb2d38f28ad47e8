"""Entry point of `python -m tiedtools` and of the `tiedtools` command."""

import gc
import io
import os
import sys

from tiedtools.base import interrupts


def main() -> None:
    # A stream closed by the shell is None here, and the next file opened would reuse its descriptor.
    if sys.stdin is None:
        sys.stdin = open(os.devnull)
    closed = sys.stdout is None
    if closed:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    if closed:
        sys.exit("tiedtools: standard output is closed; redirect it to /dev/null instead")
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]  # file names that are not UTF-8
    if isinstance(sys.stdout.buffer, io.RawIOBase):
        # With PYTHONUNBUFFERED, a short write to a full disk or a pipe would lose data without an error.
        raw, how = io.BufferedWriter(sys.stdout.buffer), (sys.stdout.encoding, sys.stdout.errors)
        sys.stdout = io.TextIOWrapper(raw, *how, line_buffering=True)
    gc.set_threshold(50_000)  # imports make many objects, and no garbage
    try:
        interrupts.install()
        from tiedtools.cli import cli

        cli(prog_name="tiedtools")
    except KeyboardInterrupt as stop:  # repeated, or sent before the command line was parsed
        print("tiedtools: interrupted", file=sys.stderr)
        sys.exit(128 + stop.args[0])
    finally:
        interrupts.ignore()
        gc.freeze()  # otherwise, the exiting interpreter searches all objects for garbage


if __name__ == "__main__":
    main()
