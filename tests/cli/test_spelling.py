"""Test that messages name the library's settings as command-line options."""

import click
import pytest

from tiedtools.cli import cli
from tiedtools.cli.spelling import spelled


@pytest.mark.parametrize("command, message, expected", [
    ("lstm", "lower `size` or `hidden=5`", "lower --size or --hidden 5"),
    ("lstm", "set `dropout_kind=variational or gal`", "set --dropout-kind variational or gal"),
    ("lstm", "`tying='tied'`, `tying=untied`", "--tie, neither --tie nor --tie-linear"),
    ("lstm", "created with `output_bias=False`", "created with --no-output-bias"),
    ("w2v", "lower `lr`; `epochs=3`", "lower --lr; --epochs 3"),
    ("rnnlm", "`classes` and `cutoff`", "--class and --gradient-cutoff"),
    ("ppl", "rerun with `resume` `save_model=FILE`", "rerun with --resume --save-model FILE"),
    ("check", "read it with `errors='replace'`", "read it with --errors replace"),
    ("analogy", "`<unk>`, `</s>`, `tiedtools vocab`, `emb`", "`<unk>`, `</s>`, `tiedtools vocab`, `emb`"),
])  # fmt: skip
def test_settings_are_spelled_as_options_of_the_command(command, message, expected):
    assert spelled(message, cli.get_command(click.Context(cli), command)) == expected


def test_errors_and_messages_are_spelled(run, tmp_path):
    assert "make --size and --hidden equal, or use --tie-linear (see" in run("lstm", "--tie", "-hidden", 7, "x").stderr
    (tmp_path / "text").write_text("a b\n")
    assert "lower --min-count or use another" in run("w2v", tmp_path / "text").stderr
    (tmp_path / "vocab").write_text("</s> 5\na 9\nb 3\n")
    assert (
        "--min-count 5 dropped 1 of 3 words" in run("w2v", "-read-vocab", tmp_path / "vocab", tmp_path / "text").stderr
    )
