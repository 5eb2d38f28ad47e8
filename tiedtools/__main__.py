"""`python -m tiedtools`, and the `tiedtools` command."""

import signal

from tiedtools.cli import cli


def interrupt(number, frame):
    raise KeyboardInterrupt(number)


def main():
    # A shell starts background jobs with SIGINT ignored; a long training should answer it all the same.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    cli(prog_name="tiedtools")


if __name__ == "__main__":
    main()
