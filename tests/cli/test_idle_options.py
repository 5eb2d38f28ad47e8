"""Test warnings about options of `tiedtools w2v` that have no effect."""

import pytest

OF_L = ["--lr-linear", 0.1, "--init-linear", "uniform", "--precision", "float32"]
OF_SAMPLING = ["-hs", 1, "--ns-exponent", 0.5, "--shift", -1]
GRAD = ["--cbow-grad", "exact"]


def without(reason, *names):
    return "".join(f"{name} has no effect {reason}\n" for name in names)


@pytest.mark.parametrize("options, told", [
    (OF_L, without("without --tie-linear", *OF_L[::2])),
    ([*OF_L, "--tie"], without("without --tie-linear", *OF_L[::2])),
    ([*OF_L, "--tie-signs"], without("without --tie-linear", *OF_L[::2])), ([*OF_L, "--tie-linear"], ""),
    (["-init-linear=uniform"], without("without --tie-linear", "--init-linear")),
    (["--tie-linear", *OF_L[4:], "--exact"], without("with separate negatives per target", "--precision")),
    (["--negated", 0.5], without("without --tie-signs", "--negated")),
    (["--negated", 0.5, "--tie"], without("without --tie-signs", "--negated")),
    (["--negated", 0.5, "--tie-linear"], without("without --tie-signs", "--negated")),
    (["--negated", 0.5, "--tie-signs", "--shift", -1], ""), ([*GRAD, "--shift", -1], ""),
    ([*GRAD, "--cbow-sum"], without("with --cbow-sum", "--cbow-grad")),
    ([*GRAD, "-cbow", 0], without("with --cbow 0", "--cbow-grad")),
    (["-cbow", 0, "--cbow-sum"], without("with --cbow 0", "--cbow-sum")),
    ([*GRAD, "-cbow", 0, "--cbow-sum"], without("with --cbow 0", "--cbow-grad", "--cbow-sum")),
    (["--cbow-sum", "--fit-pmi"], ""), (["--shift", -1, "--tie", "--no-fit-pmi"], ""), (OF_SAMPLING, ""),
    (
        [*OF_SAMPLING, "--fit-pmi", "-negative", 0],
        without("with --negative 0", "--fit-pmi", "--shift", "--ns-exponent"),
    ),
    (["--fixed-window", "--min-alpha", 0.001], ""),
    (["--batch", 1, 8, 8, "--exact"], without("with separate negatives per target", "--shared-negatives")),
    (["--batch", 1, 8, 8], ""),
], ids=str)  # fmt: skip
def test_options_without_effect_are_reported(run, tmp_path, options, told):
    (tmp_path / "text").write_text("the cat sat on the mat\n" * 20)
    result = run("w2v", "-size", 4, "-iter", 1, "-debug", 0, *options, tmp_path / "text")
    assert (result.exit_code, result.stderr) == (0, told)
