"""Test warnings about options of `tiedtools w2v` that have no effect."""

import pytest

FULL = ["--tie-linear", "--linear", "full"]


@pytest.mark.parametrize(
    "options, told",
    [
        (["--lr-linear", 0.1, "--tie"], "--lr-linear has no effect without --tie-linear\n"),
        (
            ["--init-linear", "uniform", "--lr-linear", 0.1],
            "--lr-linear has no effect without --tie-linear\n--init-linear has no effect without --tie-linear\n",
        ),
        (
            ["--linear", "signs", "--negated", 0.5],
            "--linear has no effect without --tie-linear\n--negated has no effect without --tie-linear\n",
        ),
        (["--linear", "full", "--tie"], "--linear has no effect without --tie-linear\n"),
        (["--precision", "float32"], "--precision has no effect without --tie-linear\n"),
        (["--tie-linear", "--linear", "signs", "--negated", 0.5, "--shift", -1], ""),
        (
            ["--tie-linear", "-init-linear=uniform", "-lr-linear=0.1", "-precision=float32"],
            "--lr-linear has no effect without --linear full\n--init-linear has no effect without --linear full\n"
            "--precision has no effect without --linear full\n",
        ),
        ([*FULL, "--init-linear", "uniform", "--lr-linear", 0.1, "--precision", "float32", "--shift", -1], ""),
        ([*FULL, "--negated", 0.5], "--negated has no effect with --linear full\n"),
        (
            [*FULL, "--precision", "float32", "--exact"],
            "--precision has no effect with separate negatives per target\n",
        ),
        (["--shift", -1, "--cbow-grad", "exact"], ""),
        (["--shift", -1, "--tie"], ""),
        (["--batch", 1, 8, 8, "--exact"], "--shared-negatives has no effect with separate negatives per target\n"),
        (["--batch", 1, 8, 8], ""),
    ],
)
def test_options_without_effect_are_reported(run, tmp_path, options, told):
    (tmp_path / "text").write_text("the cat sat on the mat\n" * 20)
    result = run("w2v", "-size", 4, "-iter", 1, "-debug", 0, *options, tmp_path / "text")
    assert (result.exit_code, result.stderr) == (0, told)
