"""Test settings of word2vec that depend on each other, and those that other programs have, against gensim."""

import itertools
import math
import types

import numpy as np
import pytest
from w2vcase import TYINGS, topic_text

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.base.settings import Files
from tiedtools.kernels.base import tiles
from tiedtools.models.word2vec import config, workspaces
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.ranksrun import lr_factor
from tiedtools.models.word2vec.run import Run
from tiedtools.models.word2vec.tables import noise_probabilities, noise_table
from tiedtools.models.word2vec.trainer import Word2VecTrainer

VOCAB, TEXT = topic_text(100)
COUNTS = np.array([400, 900, 500, 300, 200, 100, 50, 20, 5, 5, 1], np.int64)

# Defaults


@pytest.mark.parametrize("tying", TYINGS)
def test_defaults_with_and_without_fit_pmi(tying):
    choices = ("cbow", "skipgram"), (None, False, True), (False, True), (1, 5, 8)
    for architecture, fit_pmi, cbow_sum, negative in itertools.product(*choices):
        pmi = {None: tying == "signs"}.get(fit_pmi, fit_pmi)
        rates = {"cbow": {False: 0.05, True: 0.05 if cbow_sum else 0.2}, "skipgram": {False: 0.025, True: 0.035}}
        c = Config(tying=tying, architecture=architecture, fit_pmi=fit_pmi, cbow_sum=cbow_sum, negative=negative)
        assert c.fit_pmi is pmi and c.lr == rates[architecture][pmi]
        assert c.shift == pytest.approx(-math.log(negative) if pmi else 0)
        assert c.cbow_grad == ("exact" if pmi else "ctool") and c.skip_input == (tying != "untied")


@pytest.mark.parametrize("given", [dict(shift=0.0), dict(shift=-1.5), dict(cbow_grad="ctool"), dict(lr=0.01)], ids=str)
def test_explicit_settings_override_parts_of_fit_pmi(given):
    for model in dict(tying="signs"), dict(fit_pmi=True), dict(tying="tied", fit_pmi=True):
        found = Config(**model, **given)
        expected = dict(shift=-math.log(5), cbow_grad="exact", lr=0.2) | given
        assert {name: getattr(found, name) for name in expected} == expected and found.fit_pmi


def test_without_negative_samples_there_is_no_shift():
    assert Config(hs=True, negative=0, fit_pmi=True).shift == 0


def test_rules_of_the_kernels():
    for options, expected in (
        ({}, (3, 3, True, False)),
        (dict(cbow_grad="exact"), (3, 3, True, True)),
        (dict(cbow_sum=True), (3, 3, False, False)),
        (dict(cbow_sum=True, cbow_grad="exact"), (3, 3, False, False)),
        (dict(fixed_window=True), (3, 1, True, False)),
    ):
        rules = workspaces.rules(Config(window=3, **options))
        assert (rules.window, rules.radii, rules.mean, rules.divide) == expected


@pytest.mark.parametrize(
    "lr, options", [(0.1, dict(lr=0.1)), (0.05, {}), (0.025, dict(architecture="skipgram")), (0.2, dict(tying="signs"))]
)
def test_min_alpha_is_at_most_the_learning_rate(lr, options):
    assert Config(min_alpha=lr, **options).min_alpha == lr
    with pytest.raises(Contradiction, match=f"`min_alpha={lr + 0.001}` is above `lr={lr}`; lower it"):
        Config(min_alpha=lr + 0.001, **options)


def test_batches_of_tied_vectors_depend_on_the_shift():
    shapes = {name: workspaces.layout(Config(**options)) for name, options in TYINGS.items()}
    assert shapes["tied"] == (1, 8, 64) and shapes["signs"] == (1, 32, 32)
    for options, name in (
        (dict(fit_pmi=True), "signs"),
        (dict(shift=-1.0), "signs"),
        (dict(shift=1.0), "tied"),
        (dict(fit_pmi=True, shift=0.0), "tied"),
    ):
        assert workspaces.layout(Config(tying="tied", **options)) == shapes[name]
    for name in "untied", "linear":
        assert workspaces.layout(Config(tying=name, fit_pmi=True)) == shapes[name]


@pytest.mark.parametrize("architecture, targets", [("cbow", (1, 1)), ("skipgram", (6, 10))])
def test_batches_depend_on_the_targets_of_a_window(architecture, targets):
    """A random window has 2 (1 + ... + 5) / 5 words on average."""
    push = [
        workspaces.push(Config(lr=0.1, architecture=architecture, fixed_window=fixed), 0.01, 8)
        for fixed in (False, True)
    ]
    assert push == pytest.approx([8 * 0.01 * 5 * n * 0.1 for n in targets])


def test_learning_rate_of_several_ranks():
    square_root = (
        {},
        dict(tying="tied"),
        dict(tying="signs", fit_pmi=False),
        dict(fit_pmi=True, architecture="skipgram"),
    )
    sixth_root = dict(tying="signs"), dict(tying="linear"), dict(fit_pmi=True)
    for power, settings in (1 / 2, square_root), (1 / 6, sixth_root):
        assert [lr_factor(4, Config(**options)) for options in settings] == [pytest.approx(4**power)] * len(settings)


# The noise distribution


@pytest.mark.parametrize("exponent, line_ends", [(0.0, 0), (0.5, 400), (0.75, 400), (0.75, 0), (1.0, 0), (-1.0, 400)])
def test_noise_distribution_of_gensim(exponent, line_ends):
    """gensim has no `</s>`; here its probability is spread over all other words."""
    word2vec = pytest.importorskip("gensim.models.word2vec").Word2Vec
    words = [k for k, n in enumerate(COUNTS) if k or line_ends]
    wv = types.SimpleNamespace(index_to_key=words, get_vecattr=lambda k, _: int(COUNTS[words[k]]))
    theirs = types.SimpleNamespace(wv=wv, ns_exponent=exponent)
    word2vec.make_cum_table(theirs)
    expected = np.diff(theirs.cum_table.astype(float), prepend=0) / theirs.cum_table[-1]
    if line_ends:
        expected = expected[1:] + expected[0] / (len(COUNTS) - 1)
    found = noise_probabilities(np.append(line_ends, COUNTS[1:]), exponent)
    assert found[0] == 0
    np.testing.assert_allclose(found[1:], expected, atol=1e-9)


@pytest.mark.parametrize("exponent", [0.25, 1.0])
def test_runs_draw_from_the_noise_distribution(exponent):
    run = Run(Word2Vec(VOCAB, Config(size=5, ns_exponent=exponent)), TEXT)
    np.testing.assert_array_equal(run.noise, noise_table(VOCAB.counts, exponent))
    assert (run.noise != noise_table(VOCAB.counts, 0.75)).any()


def test_a_frequent_negative_is_not_shared():
    """With a high exponent, one word is nearly every negative."""
    counts = np.concatenate([[0, 1000], np.full(1000, 10)])
    vocab = types.SimpleNamespace(counts=counts)
    shared = [not workspaces.own_negatives(vocab, Config(architecture="skipgram", ns_exponent=n)) for n in (0.5, 5.0)]
    assert shared == [True, False]


# The learning rate


@pytest.mark.parametrize("lr, min_alpha", [(0.025, 1e-4), (0.1, 0.0), (0.1, 0.1), (0.05, 0.01)])
def test_learning_rate_of_gensim(lr, min_alpha):
    word2vec = pytest.importorskip("gensim.models.word2vec").Word2Vec
    theirs = types.SimpleNamespace(alpha=lr, min_alpha=min_alpha, epochs=1)
    run = Run(Word2Vec(VOCAB, Config(size=5, lr=lr, min_alpha=min_alpha, epochs=3)), TEXT)
    for done in 0, 1, TEXT.size, 2 * TEXT.size + 7, 3 * TEXT.size:
        expected = word2vec._get_next_alpha(theirs, done / (3 * TEXT.size + 1), 0)
        assert run.lr(done) == pytest.approx(expected, rel=1e-12)


def test_learning_rate_is_linear_to_min_alpha_or_a_fraction():
    total = 2 * TEXT.size
    rates = lambda **options: [
        Run(Word2Vec(VOCAB, Config(size=5, lr=0.1, epochs=2, **options)), TEXT).lr(done)
        for done in (0, (total + 1) / 4, (total + 1) / 2, total + 1)
    ]
    assert rates(min_alpha=0.02) == pytest.approx([0.1, 0.08, 0.06, 0.02], rel=1e-12)
    assert rates(min_alpha=0.0) == pytest.approx([0.1, 0.075, 0.05, 0], rel=1e-12)
    assert rates() == pytest.approx([0.1, 0.075, 0.05, 1e-5], rel=1e-12)


# Vectors and names


@pytest.mark.parametrize("settings, which", [
    (dict(tying="signs"), "sum"), (dict(tying="signs", negated=0.0), "concat"), (dict(hs=True, negative=0), "out"),
    (dict(hs=True, negative=0), "sum"),
])  # fmt: skip
def test_vectors_that_a_model_does_not_have_are_refused(settings, which):
    config = Config(size=4, **settings)
    for refused in (
        lambda: Word2VecTrainer(config, ["none"], Files(write=which)),
        lambda: Word2Vec(VOCAB, config).vectors(which),
    ):
        with pytest.raises(TiedtoolsError, match=f"`write={which}`: "):
            refused()


NAMES = [
    ({}, "CBOW, untied"),
    (dict(fit_pmi=True), "CBOW, untied, fit to PMI"),
    (dict(tying="tied", architecture="skipgram"), "skip-gram, tied"),
    (dict(tying="tied", architecture="skipgram", fit_pmi=True), "skip-gram, tied, fit to PMI"),
    (dict(tying="signs"), "CBOW, tied, fixed signs, fit to PMI"),
    (dict(tying="signs", fit_pmi=False), "CBOW, tied, fixed signs"),
    (dict(tying="linear", precision="float32"), "CBOW, tied+L"),
    (dict(tying="linear", precision="bfloat16"), "CBOW, tied+L in bfloat16"),
    (dict(tying="linear", precision="bfloat16", fit_pmi=True, lr=0.01), "CBOW, tied+L in bfloat16, fit to PMI"),
]


def test_names_in_the_log():
    for options, expected in NAMES:
        config = Config(size=4, **options)
        assert Word2VecTrainer(config, ["none"], Files()).named(Word2Vec(VOCAB, config)) == expected


DIFFERENT = dict(ns_exponent=0.0, cbow_sum=True, fixed_window=True, min_alpha=0.04, shift=-1.0)


def test_every_option_changes_the_parameters():
    found = set()
    for name in None, *DIFFERENT:
        model = Word2Vec(VOCAB, Config(size=5, epochs=2, **{name: DIFFERENT[name]} if name else {}))
        model.train(TEXT)
        found.add(model.emb_in.tobytes())
    assert len(found) == 1 + len(DIFFERENT)


def test_constants_that_are_repeated_to_import_no_compiler():
    assert config.ROWS == tiles.ROWS
