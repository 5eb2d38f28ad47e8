"""Test which settings the options of `tiedtools rnnlm` give."""

from parsing import context

from tiedtools.cli.training import settings_of
from tiedtools.models.rnnlm.config import RnnlmConfig, configure


def configuration(*args):
    return configure(**settings_of(context("rnnlm", *args)))[0]


def test_options_reach_the_configuration():
    options = dict(
        hidden=12, classes=34, doc_dim=5, doc_lr=0.2, start_doc="first", bptt=4, bptt_block=6, beta=1e-6, cutoff=9.0,
        direct_order=4, seed=7, threads=2,
    )  # fmt: skip
    names = {"classes": "class", "cutoff": "gradient-cutoff", "seed": "rand-seed"}
    given = [part for k, value in options.items() for part in (f"-{names.get(k, k).replace('_', '-')}", value)]
    flags = dict(old_classes=True, independent=True, defer=True)
    config = configuration(*given, "-direct", 2.5, "-old-classes", "-independent", "-defer", "--no-sentences")
    assert config == RnnlmConfig(**options, **flags, direct=2_500_000)


def test_defaults():
    assert configuration() == RnnlmConfig()
    paper = dict(sentences=True, learn_start=True, shuffle=True)
    assert configuration("--doc-dim", 20) == RnnlmConfig(hidden=100, doc_dim=20, **paper)
    assert configuration("--sentences") == RnnlmConfig(**paper)
    assert configuration("--doc-dim", 20, "--no-sentences") == RnnlmConfig(hidden=100, doc_dim=20)
