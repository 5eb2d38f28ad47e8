"""What a mistyped command line is told: what is wrong, of which command, and what may have been meant."""

import click
import pytest

MISTAKES = {
    "lstn": "tiedtools: No such command 'lstn'. Did you mean 'lstm'? (see tiedtools --help)",
    "W2V text": "tiedtools: No such command 'W2V'. Did you mean 'w2v'? (see tiedtools --help)",
    "eval_sim v": "tiedtools: No such command 'eval_sim'. Did you mean 'eval-sim'? (see tiedtools --help)",
    "xyzzy": "tiedtools: No such command 'xyzzy'. (see tiedtools --help)",
    "w2v -size": "tiedtools w2v: Option '-size' requires an argument. (see tiedtools w2v --help)",
    "bench lstm -runs": "tiedtools bench lstm: Option '-runs' requires an argument. (see tiedtools bench lstm --help)",
    "w2v -size ten": "tiedtools w2v: Invalid value for '-size' / '--size': 'ten' is not a whole number."
    " (see tiedtools w2v --help)",
    "lstm --decay x": "tiedtools lstm: Invalid value for '-decay' / '--decay': 'x' is not a number."
    " (see tiedtools lstm --help)",
}


@pytest.mark.parametrize("line, message", MISTAKES.items())
def test_mistakes_name_the_command_and_the_way_out(run, line, message):
    result = run(*line.split())
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message + "\n")


@pytest.mark.skipif(not hasattr(click.exceptions, "NoArgsIsHelpError"), reason="needs click 8.2")
@pytest.mark.parametrize("line", ["", "data", "plot"])
def test_without_a_command_there_is_help(run, line):
    result = run(*line.split())
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", run(*line.split(), "--help").stdout)
