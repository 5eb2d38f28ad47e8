"""Test warnings about options of `tiedtools w2v` that have no effect."""

import pytest


@pytest.mark.parametrize(
    "options, told",
    [
        (["--lr-linear", 0.1, "--tie"], "--lr-linear has no effect without --tie-linear\n"),
        (
            ["--init-linear", "uniform", "--lr-linear", 0.1],
            "--lr-linear has no effect without --tie-linear\n--init-linear has no effect without --tie-linear\n",
        ),
        (["--init-linear", "uniform", "--lr-linear", 0.1, "--tie-linear"], ""),
        (["--precision", "float32"], "--precision has no effect without --tie-linear\n"),
        (["--tie-linear", "--rank", 8], "--rank has no effect with --linear full\n"),
        (
            ["--tie-linear", "-linear=lowrank", "-precision=float32"],
            "--precision has no effect with --linear lowrank\n",
        ),
        (["--batch", 1, 8, 8, "--exact"], "--shared-negatives has no effect with separate negatives per target\n"),
        (["--batch", 1, 8, 8], ""),
    ],
)
def test_options_without_effect_are_reported(run, tmp_path, options, told):
    (tmp_path / "text").write_text("the cat sat on the mat\n" * 20)
    result = run("w2v", "-size", 4, "-iter", 1, "-debug", 0, *options, tmp_path / "text")
    assert (result.exit_code, result.stderr) == (0, told)
