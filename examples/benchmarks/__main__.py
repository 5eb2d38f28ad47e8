"""Run the benchmarks of this checkout: python examples/benchmarks COMMAND [OPTIONS]."""

import os
import signal
import sys

if __name__ == "__main__":
    examples = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [examples, os.path.dirname(examples)]
    sys.path[:1] = folders
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])  # of workers
    for each in signal.SIGTERM, signal.SIGHUP:  # unwinds, which ends child processes and removes folders
        signal.signal(each, lambda number, _: sys.exit(128 + number))
    from benchmarks.commands import cli

    cli(prog_name="benchmarks")
