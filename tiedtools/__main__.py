"""`python -m tiedtools`, and the `tiedtools` command."""

import signal

from tiedtools.cli import cli


def main():
    # A shell starts background jobs with SIGINT ignored; a long training should answer it all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cli(prog_name="tiedtools")


if __name__ == "__main__":
    main()
