"""word2vec with vectors composed from character n-grams: against plain NumPy, and against fastText."""

import numpy as np
import pytest
import reference
from fasttextcase import rows_of
from w2vcase import TYINGS, encoded, sentences, topic_text

import tiedtools as tt
from tiedtools.base.errors import TiedtoolsError
from tiedtools.kernels.base.arrays import aligned
from tiedtools.kernels.base.sums import sum_rows
from tiedtools.kernels.word2vec import composed
from tiedtools.models.composing import composer
from tiedtools.models.word2vec import pieces
from tiedtools.models.word2vec.config import Config, configure
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import Run
from tiedtools.models.word2vec.workspaces import BATCH, layout
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.ngrams import Ngrams
from tiedtools.vectors.vectors import Vectors

WORDS = ["</s>", "where", "Füße", "né", "a", "the", "Straße", "there", "others", "mother", "ananas", "e" * 1200]
V, M, BUCKETS = len(WORDS), 7, 150
RNG = np.random.default_rng(0)
LISTS = [RNG.integers(1, V, n).tolist() for n in RNG.permutation(14) + 2]
STEMS = [stem + end for stem in ("walk", "talk", "jump", "play", "work", "look") for end in ("ing", "ed", "s", "er")]


def vocab():
    return Vocab(list(WORDS), np.arange(V, 0, -1))


@pytest.mark.parametrize("minn, maxn, buckets", [(3, 6, 2_000_000), (1, 4, 40), (2, 2, 1), (3, 6, 0), (3, 0, 9)])
def test_rows_are_those_of_fasttext_without_empty_buckets_and_one_for_those_of_the_same_words(minn, maxn, buckets):
    ngrams = Ngrams(WORDS, minn, maxn, buckets)
    expected = [rows_of(word, WORDS, minn, maxn, buckets) if maxn and buckets else [k] for k, word in enumerate(WORDS)]
    users = {}
    for k, rows in enumerate(expected):
        for row in rows:
            users.setdefault(row, []).append(k)
    assert np.flatnonzero(ngrams.table >= 0).tolist() == sorted(users) and len(ngrams.table) == V + buckets
    assert (ngrams.table[:V] == np.arange(V)).all() and (ngrams.rows[ngrams.starts[:-1]] == np.arange(V)).all()
    shared = {}
    for row, words in users.items():
        shared.setdefault(tuple(words), set()).add(ngrams.table[row])
    assert {len(rows) for rows in shared.values()} == {1} and len(ngrams) == len(shared)
    for k, rows in enumerate(expected):
        ours = ngrams.rows[ngrams.starts[k] : ngrams.starts[k + 1]]
        assert sorted(ngrams.table[rows]) == sorted(np.repeat(ours, ngrams.sizes[ours])), WORDS[k]
    assert ngrams.lengths.tolist() == [*map(len, expected)]


@pytest.mark.parametrize("size", [16, 300, 1000])
def test_sums_of_rows_agree_with_numpy(size):
    rng = np.random.default_rng(size)
    matrix, out, rows = aligned(50, size), aligned(3, size), rng.integers(0, 50, 20).astype(np.int32)
    matrix[:], weights, P = rng.normal(size=matrix.shape), rng.random(50).astype(np.float32), matrix.shape[1]
    sum_rows(out, 1, matrix, rows, 3, 17, weights, 0.5, False, 0, P)
    expected = 0.5 * (weights[rows[3:17], None] * matrix[rows[3:17]]).sum(0)
    np.testing.assert_allclose(out, [0 * expected, expected, 0 * expected], atol=1e-5)
    sum_rows(out, 1, matrix, rows, 5, 6, None, 2.0, True, P - 16, P)
    expected[P - 16 :] += 2 * matrix[rows[5], P - 16 :]
    np.testing.assert_allclose(out[1], expected, atol=1e-5)


def trained(frozen=(), lr=0.05, **options):
    """Train on one piece; returns the model with its parameters before, and the Pieces."""
    config = Config(
        size=M,
        window=3,
        init_range=0.5,
        sample=0,
        subwords="ngrams",
        min_n=2,
        max_n=3,
        buckets=BUCKETS,
        lr=0.01,
        **options,
    )
    model = Word2Vec(vocab(), config)
    if not model.tied:
        model.emb_out[:] = np.random.default_rng(1).normal(0, 0.3, model.emb_out.shape)
    if frozen:
        model.frozen = tuple(np.isin(np.arange(len(matrix)), frozen).astype(np.uint8) for matrix in model.padded[:2])
    before = {name: array.astype(np.float64) for name, array in model.arrays.items()}
    run = Run(model, encoded(np.concatenate([[*line, 0] for line in LISTS]).astype(np.int32), model.vocab))
    space, totals, text = run.workspaces[0], np.zeros(2), sentences(*LISTS)
    n = len(text[0])
    for to, array in zip(space.text, text):
        to[:n] = array
    space.train(run, totals, n, lr, np.uint64(5))
    return model, before, space, totals, run


@pytest.mark.parametrize("exact", [False, True], ids=["shared", "exact"])
@pytest.mark.parametrize("tying", TYINGS)
@pytest.mark.parametrize("cbow", [dict(), dict(cbow_grad="exact"), dict(cbow_sum=True), None], ids=str)
def test_a_piece_agrees_with_reference(cbow, tying, exact):
    options = dict(TYINGS[tying], exact=exact, shared_negatives=None if exact else (2, 4, 8), precision="float32")
    options |= dict(architecture="skipgram") if cbow is None else cbow
    model, before, space, totals, run = trained(**options)
    c, ngrams, words = model.config, model.ngrams, np.arange(V)
    text, noise, direct = sentences(*LISTS), run.noise, not (exact or model.tied)
    occurs = np.bincount(text[0], minlength=V)
    used = occurs[words] > 0
    if not direct:  # the local words of the piece, and their noise
        local = space.inner.text.tokens[: len(text[0])]
        drawn = space.drawn[: space.common.draws(len(local))]
        words = space.common.words[0, : max(*local, *drawn) + 1]
        assert (words[local] == text[0]).all()
        used = np.arange(len(words)) <= local.max()
        occurs = np.bincount(local, minlength=len(words))
        if model.tied:
            occurs, used = occurs + np.bincount(drawn, minlength=len(words)), used | True
        text, noise = (local, *text[1:]), space.noise[: len(words)]
    # Their vectors by definition, from fastText's full matrix.
    table = [rows_of(WORDS[w], WORDS, 2, 3, BUCKETS) for w in words]
    full = before["emb_in"][np.maximum(ngrams.table, 0)]
    emb_in = np.array([full[rows].mean(0) for rows in table])
    emb_out = emb_in if model.tied else before["emb_out"][words]
    start_in, start_out, proj = emb_in.copy(), emb_out.copy(), before.get("proj", np.zeros((0, 0))).copy()
    sizes = np.array([*map(len, table)]) if c.cbow and not c.cbow_sum else None
    common = dict(lr=0.05, lr_proj=0.05 * c.lr_linear, seed=reference.mix(5), sizes=sizes)
    lists = [array.tolist() for array in text]
    if exact:
        batch = BATCH if tying == "linear" else 1
        nats, predictions = reference.word2vec(
            emb_in, emb_out, proj, lists, noise.tolist(), None, 0, c, batch, **common
        )
    else:
        nats, predictions = reference.word2vec_tiles(
            emb_in, emb_out, proj, lists, noise.tolist(), c, layout(c), **common
        )
    assert totals[0] == pytest.approx(np.sum(nats), rel=1e-5) and totals[1] == predictions > 100
    # Each row gets the changes of all its words, at most those of as many occurrences, or their mean.
    limit = pieces.SATURATION["tied" if model.tied else "CBOW" if model.config.cbow else "skip-gram"] / 0.05
    expected = dict(before, proj=proj) if len(proj) else dict(before)

    def spread(matrix, change, rows):
        every, users = np.concatenate(rows).astype(int), np.repeat(range(len(rows)), [*map(len, rows)])
        hits, total = np.zeros((2, len(matrix)))
        np.add.at(hits, every, 1)
        np.add.at(total, every, occurs[users])
        part = np.maximum(np.minimum(limit / np.maximum(total, 1e-9), 1), 1 / np.maximum(hits, 1))
        np.add.at(matrix, every, part[every, None] * change[users])

    spread(full, emb_in - start_in, [rows if here else [] for rows, here in zip(table, used)])
    here = ngrams.table >= 0
    expected["emb_in"] = before["emb_in"].copy()
    expected["emb_in"][ngrams.table[here]] = full[here]
    np.testing.assert_allclose(expected["emb_in"][ngrams.table[here]], full[here])  # equal where they share a row
    if direct:
        expected["emb_out"] = emb_out
    elif not model.tied:
        expected["emb_out"] = before["emb_out"].copy()
        spread(expected["emb_out"], emb_out - start_out, [[w] for w in words])
    for name, array in model.arrays.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=3e-5, err_msg=name)
        assert np.abs(array - before[name]).max() > 1e-5, name


def test_changes_of_rows():
    n, place, rows = 40, np.full(2, -1, np.int32), np.zeros(40, np.int32)
    lists = *(np.zeros(n, kind) for kind in (np.int32, np.int64, np.int32, np.float32)), place
    occurs, matrix, none = np.full(n, 3, np.float32), np.zeros((2, 48), np.float32), np.zeros(0, np.uint8)
    owners = np.arange(n, dtype=np.int32)
    assert composed.invert(*lists, rows, owners, occurs) == 1 and (place == -1).all()
    # 40 changes of 120 occurrences: the sum of a tenth, the mean, of all; with as many on another thread, half as much.
    for limit, racing, expected in (12.0, 1, 4), (0.1, 1, 1), (200.0, 1, 40), (12.0, 2, 2), (0.1, 2, 0.5):
        matrix[:], changes = 0, np.ones((n, 48), np.float32)
        composed.spread(matrix, none, changes, lists, rows, owners, occurs, 16, 32, limit, racing)
        assert matrix[0, 16:32] == pytest.approx(expected) and np.count_nonzero(matrix) == 16
    frozen = [1, 2, V, V + 3]
    model, before, *_ = trained(frozen=frozen, exact=True)
    for name, array in model.arrays.items():
        changed = np.abs(array - before[name]).max(1) > 0
        assert not changed[[row for row in frozen if row < len(array)]].any() and changed[5:12].all(), name
    model, before, _, totals, _ = trained(lr=0.0, exact=True)
    assert totals[0] > 0 and all((array == before[name].astype("f4")).all() for name, array in model.arrays.items())


@pytest.fixture(scope="module")
def inflected():
    """Sentences about one stem each, with all its forms but one; forms share n-grams."""
    rng = np.random.default_rng(1)
    stems = np.array(STEMS).reshape(6, 4)
    return [rng.choice(stems[rng.integers(6)][:3], 12).tolist() for _ in range(1500)]


SETTINGS = dict(subwords="ngrams", size=16, epochs=3, min_count=1, sample=0, threads=1, buckets=5000, lr=0.025)


@pytest.mark.parametrize("options", [
    dict(), dict(architecture="skipgram"), dict(tying="signs"), dict(tying="linear", architecture="skipgram"),
    dict(tying="tied", fit_pmi=True), dict(threads=2, deterministic=True), dict(exact=True),
], ids=str)  # fmt: skip
def test_unseen_words_are_near_words_with_the_same_stem(inflected, options, tmp_path):
    model = tt.Word2Vec(**SETTINGS | options).fit(inflected)
    unseen = [f"{stem}er" for stem in ("walk", "talk", "jump", "play", "work", "look")]
    vectors = model.vectors if model.vectors.composes else model.word_vectors("in")
    assert vectors.composes and not {*unseen} & {*vectors.words}
    both = vectors.joined(vectors.compose(unseen))
    assert both.counts.tolist() == [*vectors.counts, *[0] * 6]
    for word in unseen:
        assert both.most_similar(word, topn=3)[0][0].startswith(word[:4])
    model.save(tmp_path / "m.npz")
    again, loaded = Vectors.read(tmp_path / "m.npz"), tt.load(tmp_path / "m.npz").word_vectors("in")
    for other in again, loaded:
        np.testing.assert_array_equal(np.asarray(other), np.asarray(vectors))
        np.testing.assert_array_equal(other.compose(unseen).matrix, both.matrix[-6:])
    np.testing.assert_array_equal(composer(str(tmp_path / "m.npz"))(unseen).matrix, both.matrix[-6:])


@pytest.mark.parametrize("options", [dict(), dict(buckets=0), dict(max_n=0), dict(tying="linear")], ids=str)
def test_fasttext_and_gensim_compose_the_same_vectors_from_the_bin(inflected, options, tmp_path):
    path, text = str(tmp_path / "m.bin"), tmp_path / "m.txt"
    model = tt.Word2Vec(**SETTINGS | options).fit(inflected, save_model=path, output=text)
    words = [*model.model.vocab.words, "walker", "unseen", "日本"]  # no n-gram of the last is known
    vectors = model.word_vectors("in")
    ours = vectors.compose(words) if vectors.composes else vectors
    read, written = Vectors.read(path), Vectors.read(text)
    np.testing.assert_allclose(np.asarray(read), np.asarray(vectors), atol=1e-6)
    np.testing.assert_allclose(np.asarray(written), np.asarray(vectors), atol=1e-6)
    if vectors.composes:
        np.testing.assert_allclose(read.compose(words).matrix, ours.matrix, atol=1e-6)
        assert composer(path)(["walker", "日本"]).words == ["walker"]
    outputs = model.model.emb_out if not model.model.tied else np.asarray(vectors) @ model.model.proj.T
    np.testing.assert_allclose(read.matrix.outputs[:], outputs, atol=1e-5)
    gensim = pytest.importorskip("gensim.models.fasttext")
    loaded = gensim.load_facebook_vectors(path)
    for word in ours.words[1:]:  # gensim gives `</s>` n-grams
        np.testing.assert_allclose(loaded[word], ours[word], atol=1e-6, err_msg=word)
    fasttext = pytest.importorskip("fasttext")
    theirs = fasttext.load_model(path)
    for word, vector in zip(ours.words, ours.matrix):
        np.testing.assert_allclose(theirs.get_word_vector(word), vector, atol=1e-6, err_msg=word)
    assert theirs.get_words()[0] == "</s>"
    np.testing.assert_allclose(theirs.get_output_matrix(), outputs, atol=1e-5)


def test_training_continues_from_a_model_and_from_a_bin(inflected, tmp_path):
    new = [["walked", "talking", "Schifffahrt", "jumper"] * 3] * 30
    first = tt.Word2Vec(**SETTINGS).fit(inflected, save_model=tmp_path / "m.bin", output=tmp_path / "m.vec")
    assert first.save(tmp_path / "m.npz") is None and (tmp_path / "m.bin.run.json").exists()
    known, results = first.model.vocab.words, []
    for name in "m.npz", "m.bin":
        how = dict(SETTINGS, ns_exponent=0.75, epochs=1, skip_input=False)
        model = tt.Word2Vec(**how).fit(new, init_from=tmp_path / name, grow=True, freeze="old")
        assert {"Schifffahrt", "jumper"} <= {*model.model.vocab.words}
        np.testing.assert_allclose(model.word_vectors("in")[known], first.word_vectors("in")[known], rtol=1e-5)
        results.append(model.word_vectors("in")["Schifffahrt"])
    np.testing.assert_array_equal(*results)
    data = (tmp_path / "m.bin").read_bytes().replace(b"walked\0", b"wal ed\0")
    (tmp_path / "s.bin").write_bytes(data.replace(b"</s>\0", b"the\0"))  # gensim's have no </s>
    words = tt.Word2Vec(**how).fit(new, init_from=tmp_path / "s.bin", grow=True).model.vocab.words
    assert "wal ed" in Vectors.read(tmp_path / "s.bin") and {*words} == {*known, "Schifffahrt", "jumper", "the"}
    with pytest.raises(TiedtoolsError, match="n-grams"):
        tt.Word2Vec(**SETTINGS).fit(new, init_from=tmp_path / "m.vec")


@pytest.mark.parametrize("options, name", [
    (dict(min_n=4, max_n=3), "min_n"), (dict(hs=True), "hierarchical"), (dict(preset="word2vec"), "preset"),
    (dict(preset=["fasttext"]), "preset"),
])  # fmt: skip
def test_contradictions_are_one_line(options, name):
    with pytest.raises(ValueError, match=name) as error:
        configure(subwords="ngrams", **options)
    assert "\n" not in str(error.value)


def test_the_preset_has_fasttexts_defaults():
    config, reading = configure(preset="fasttext", size=50, lr=0.1)
    assert (config.architecture, config.lr, config.ns_exponent, config.sample) == ("skipgram", 0.1, 0.5, 1e-4)
    assert (config.subwords, config.min_n, config.max_n, config.buckets) == ("ngrams", 3, 6, 2_000_000)
    assert (config.init_range, config.min_alpha) == (0.02, 0) and reading == dict(min_count=5)


@pytest.mark.parametrize("subwords", [None, "ngrams"])
def test_pieces_of_all_parts_of_a_text_alternate(subwords):
    vocab, text = topic_text(lines=6000)
    run = Run(Word2Vec(vocab, Config(size=5, subwords=subwords, buckets=10)), text)
    assert sorted(run.order) == list(range(len(run.cuts) - 1))
    assert run.order[:2].tolist() == ([0, 25] if subwords else [0, 1])
