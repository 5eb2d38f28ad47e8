"""What the fuzzer reads: a small good file of every kind, and how its reader is called and judged.

A reader takes the path of the damaged file, dict: name -> bytes of all that lies beside it, and a random.Random for
options. It raises what the toolkit's reader raises, or AssertionError where that gives what is not in the file.
"""

import functools
import io
import itertools
import json
import math
import struct
import zipfile

import numpy as np
import plainreaders as plain
from fitcase import CONFIG, TRAIN, TRAINING, VALID, Stopping
from fitcase import VOCAB as TOY
from fuzzmutations import PACK, UNPACK
from toylm import ToyLM

from tiedtools.encoding import encode
from tiedtools.errors import TiedtoolsError
from tiedtools.evaluation import analogysets, lexicon, perplexity, rnnlmtest, similarity
from tiedtools.fit import Fit, fit
from tiedtools.lmtext import LmText
from tiedtools.logs import read_log
from tiedtools.models import rnnlmfile
from tiedtools.models.lstmconfig import LstmConfig
from tiedtools.models.lstmlm import LstmLM
from tiedtools.models.rnnlm import Rnnlm
from tiedtools.models.rnnlmconfig import RnnlmConfig
from tiedtools.models.word2vec import Config, Word2Vec
from tiedtools.vectorcheck import Check
from tiedtools.vectors import Vectors
from tiedtools.vocab import Vocab

WORDS = ["</s>", "the", "caf\u00e9", "a\u00a0b", "<unk>", "once", "3"]
COUNTS = [5, 9, 7, 4, 4, 1, 1]
VOCAB = Vocab(WORDS, np.array(COUNTS))
MATRIX = np.random.default_rng(0).integers(-99, 99, (len(WORDS), 3)) / np.float32(4)
TEXT = "the caf\u00e9 the a\u00a0b once\nthe 3 <unk> the\n\ncaf\u00e9 caf\u00e9 a\u00a0b the\nend of it\n".encode() * 3
SETS = {
    "blanks": b"# a comment\nword1 word2 score\ncat dog 7.5\ncaf\xc3\xa9 tea 6\na b 0.25\n",
    "tabs": b"cat\tdog\t7.5\na\tb c\t1e1\nd\te\t-3\n",
    "commas": b"Word 1,Word 2,Mean\ncat,dog,7.5\nhot, cold ,1\n",
}
QUESTIONS = b": capitals\na b c d\nb a d c\n: gram1-plural\ncat cats dog dogs\ncar cars bus buses\n"
LOG = b"".join(
    json.dumps(dict(epoch=k, lr=0.5, train_ppl=90.5 - k, valid_ppl=100.25 - k, tokens_per_s=5.0, seconds=1.5 * k)).encode()
    + b"\n"
    for k in (1, 2, 3)
) + b'{"best_epoch": 3, "test_ppl": 99.5, "params": 12, "seconds": 4.5}\n'  # fmt: skip


def written(write, *args, **options):
    file = io.BytesIO()
    write(file, *args, **options)
    return file.getvalue()


def content(path, files):
    """The bytes of a file, decompressed by the standard library."""
    data = files[path.name]
    return UNPACK.get(path.suffix[1:], bytes)(data)


def agree(found, expected, *arguments):
    """found: words and matrix; `expected` reads them plainly, and must be able to."""
    try:
        words, matrix = expected(*arguments)
    except Exception as error:
        raise AssertionError(f"read, though it should not be: {type(error).__name__}: {error}") from None
    assert found[0] == words, f"words {found[0]!r:.200} and not {words!r:.200}"
    assert found[1].shape == matrix.shape and found[1].tobytes() == matrix.astype("<f4").tobytes(), "other numbers"


def corpus(path, files, rng):
    errors = rng.choice(("strict", "strict", "replace", "ignore"))
    text = encode([str(path)], errors=errors)
    words = plain.tokens(content(path, files), errors)
    assert [text.vocab.words[k] for k in text.ids] == words and text.tokens_read == len(words)
    assert len(set(text.vocab.words)) == len(text.vocab) and text.vocab.total == len(words)


def training_text(path, files, rng):
    told = []
    text = LmText.read(
        [str(path)], valid_share=rng.choice((0, 0.1, 0.5)), min_count=rng.choice((1, 2)), talk=told.append
    )
    words, ids = (
        plain.tokens(content(path, files)),
        np.concatenate([text.train, *([text.valid] if text.valid is not None else [])]),
    )
    found = [text.vocab.words[k] for k in ids]
    assert text.vocab.counts.min() >= 0 and len(set(text.vocab.words)) == len(text.vocab)
    if len(found) == len(words):
        assert all(ours in (word, "<unk>") for ours, word in zip(found, words))
    else:
        assert any("outside the vocabulary" in line for line in told) and set(found) <= set(words)


def scored_text(path, files, rng):
    errors = rng.choice(("strict", "strict", "replace", "ignore"))
    words = [word for piece in lexicon.pieces(str(path), errors) for word in piece]
    lines = content(path, files).rstrip(b"\t\v\f\r ")
    expected = plain.tokens(lines.removesuffix(b"\n") + b"\n", errors)
    assert [{"\n": "</s>"}.get(word, word) for word in words] == expected or not content(path, files).strip()
    assert [word for _, line in lexicon.lines(str(path), errors) for word in line] == [w for w in words if w != "\n"]


def vocab(path, files, rng):
    found, counts = Vocab.read(str(path)), plain.vocab(content(path, files))
    counts = {"</s>": counts.pop("</s>", 0), **{word: n for word, n in counts.items() if n}}
    assert dict(zip(found.words, found.counts.tolist())) == counts and found.words[0] == "</s>"
    assert (np.diff(found.counts[1:]) <= 0).all()


def vectors(path, files, rng, format):
    """Of a format that is told, or found: then it is any in which the file can be read."""
    found = Vectors.read(path, told := rng.choice((None, format)))
    reads = [getattr(plain, told)] if told else [plain.text, plain.glove, plain.binary]
    for read in reads[:-1]:
        try:
            return agree((found.words, found.matrix), read, content(path, files))
        except AssertionError:
            pass
    agree((found.words, found.matrix), reads[-1], content(path, files))


def npy_vectors(path, files, rng):
    found = Vectors.read(path)
    (words_name,) = files.keys() - {path.name}
    words = plain.word_list(files[words_name], words_name.endswith(".vocab"))
    agree((found.words, found.matrix), lambda: plain.paired(words, plain.npy(files[path.name])))


def safetensors_vectors(path, files, rng):
    found = Vectors.read(path)
    words = plain.word_list(files[f"{path.stem}.words"])
    agree((found.words, found.matrix), plain.safetensors, files[path.name], words)


def projector_vectors(path, files, rng):
    found = Vectors.read(path)
    agree((found.words, found.matrix), plain.tsv, files[path.name], files[f"{path.stem}.metadata.tsv"])


def model_vectors(path, files, rng):
    which = rng.choice(("", ":in", ":out"))
    found = Vectors.read(f"{path}{which}")
    assert np.isfinite(found.matrix).all() and found.matrix.size and len(found.words) == len(found.matrix)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        name = "emb_out" if which == ":out" and "emb_out.npy" in names else "emb_in"
        with np.errstate(over="ignore"):
            assert np.array_equal(plain.npy(archive.read(f"{name}.npy"))[: len(found)].astype("f4"), found.matrix)
        assert plain.npy(archive.read("words.npy")).tobytes().decode() == "\n".join(found.words)


def checked(path, files, rng):
    """`tiedtools check` tells of every file that no reader takes."""
    check = Check(str(path), examples=rng.choice((1, 3)))
    assert all(c.isprintable() for cases in check.problems.values() for _, text in cases for c in text)
    try:
        Vectors.read(path)
    except TiedtoolsError as error:
        assert check.counts.total(), f"nothing found where the reader says: {error}"
        raise
    assert "unreadable" not in check.counts, check.problems["unreadable"]


def predict(model):
    """The model's probabilities are probabilities, unless its weights are so large that it says they are none."""
    assert len(set(model.vocab.words)) == len(model.vocab) and model.vocab.words[0] == "</s>"
    assert model.vocab.counts.min() >= 0 and model.vocab.counts.shape == (len(model.vocab),)
    assert np.isfinite(model.params.values).all()
    ids = (np.arange(6, dtype=np.int32) % len(model.vocab))[:, None]
    try:
        logs, state = perplexity.score(model, ids, np.roll(ids, 1), model.start(1))
    except TiedtoolsError as error:
        assert "are no numbers" in str(error)
        return
    assert (logs <= 1e-5).all()


def language_model(path, files, rng, load):
    predict(load(path, 1))


def rnnlm_file(path, files, rng):
    model = rnnlmfile.read(path, 1)
    words, counts, classes, numbers = plain.rnnlm(files[path.name])
    V, M, C = len(words), model.config.hidden, len(model.starts) - 1
    hidden, into, out, direct = np.split(np.asarray(numbers, "f4"), np.cumsum([M, M * (V + M), (V + C) * M]))
    params, into, out = model.params, into.reshape(M, -1), out.reshape(-1, M)
    assert (model.vocab.words, model.vocab.counts.tolist()) == (words, counts)
    assert model.class_of.tolist() == classes
    ours = params["emb_in"].T, params["hid"].T, params["word_out"], params["class_hid"].T, params["start_hid"]
    for one, two in zip(ours, (into[:, :V], into[:, V:], out[:V], out[V:], hidden)):
        assert np.array_equal(one, two)
    assert not len(direct) or np.array_equal(params["direct"], direct)
    p = model.progress
    assert p["iter"] >= 0 and p["position"] >= 0 and math.isfinite(p["alpha"] + p["llogp"])
    predict(model)


def similarity_set(path, files, rng):
    found, expected = similarity.read_set(path), plain.similarity(content(path, files))
    assert [(a, b, score) for (a, b), score in zip(found.pairs, found.scores.tolist())] == expected


def analogy_set(path, files, rng):
    found, expected = analogysets.read_set(path), plain.analogies(content(path, files))
    assert found.questions == [words for _, words in expected]
    for name in {section for section, _ in expected} - {"total", "semantic", "syntactic"}:
        assert found.sections[name].tolist() == [section == name for section, _ in expected]


def probabilities(path, files, rng):
    n = content(path, files).count(b"\n")
    found = list(itertools.islice(rnnlmtest.probabilities(str(path)), n))
    assert found == [plain.decimal(line.split()[0].decode()) for line in content(path, files).split(b"\n")[:n]]
    assert all(0 <= p <= 1 for p in found)


def log(path, files, rng):
    for epoch in read_log(path):
        for figure in ("epoch", "seconds", "valid_ppl", "train_ppl", "loss"):
            assert epoch.get(figure) is None or math.isfinite(epoch[figure]) and type(epoch[figure]) is not bool


def checkpoint(path, files, rng):
    run = Fit(ToyLM(TOY, CONFIG), TRAIN, VALID, TRAINING, str(path), resume=True)
    assert 0 <= run.epoch <= run.epochs and 0 <= run.window <= run.feed.steps and run.predicted >= 0
    assert all(map(math.isfinite, (run.nll, run.busy, run.lr, run.elapsed))) and not math.isnan(run.best_loss)
    assert run.finite and (run.best is None or run.best.shape == run.model.params.values.shape)
    assert all(part.dtype == begun.dtype for part, begun in zip(run.state, run.feed.begin(0)))


def checkpoint_file():
    import pathlib
    import tempfile

    from tiedtools import interrupts

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "c.npz")
        try:
            fit(ToyLM(TOY, CONFIG), TRAIN, VALID, TRAINING, Stopping(30), str(path))
        except KeyboardInterrupt:
            interrupts.received.clear()
        return path.read_bytes()


def kinds():
    """dict: name -> (path's name, dict: name -> good bytes, reader)."""
    text = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, MATRIX.tolist())).encode()
    header = b"%d %d\n" % MATRIX.shape
    rows = b"".join(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n" for word, row in zip(WORDS, MATRIX))
    listed = "".join(f"{word}\n" for word in WORDS).encode()
    counted = "".join(f"{word} {n}\n" for word, n in zip(WORDS, COUNTS)).encode()
    big = json.dumps(dict(b=dict(dtype="F32", shape=[3], data_offsets=[0, 12]),
                          x=dict(dtype="F32", shape=[7, 3], data_offsets=[12, 96]), __metadata__={})).encode()  # fmt: skip
    tensors = struct.pack("<Q", len(big)) + big + bytes(12) + MATRIX.astype("<f4").tobytes()
    word2vec = {
        name: written(Word2Vec(VOCAB, Config(size=3, **options)).save)
        for name, options in dict(untied={}, tied=dict(sharing="linear"), hs=dict(hs=True, negative=0)).items()
    }
    lstm = {
        name: written(LstmLM(VOCAB, LstmConfig(emb=4, hidden=5, layers=1, **options)).save)
        for name, options in dict(
            linear=dict(sharing="linear", linear_bias=True), sampled=dict(sampled=3, dropout="gal", drop_word=0.1)
        ).items()
    }
    small = dict(hidden=3, classes=2, dtype="float32")
    rnnlm = {
        name: Rnnlm(VOCAB, RnnlmConfig(**small, **options))
        for name, options in dict(
            document=dict(doc_dim=2, sentences=True, learn_start=True), plain=dict(direct=8, bptt=2)
        ).items()
    }
    found = {
        **{f"text-{'-'.join(ending[1:]) or 'plain'}": ("t" + ".".join(ending), data, corpus)
           for ending, data in {("",): TEXT, ("", "gz"): PACK["gz"](TEXT), ("", "bz2"): PACK["bz2"](TEXT),
                                ("", "xz"): PACK["xz"](TEXT)}.items()},
        "text-train": ("t", TEXT, training_text),
        "text-score": ("t.txt", TEXT, scored_text),
        "vocab": ("v", counted, vocab),
        "vocab-gz": ("v.gz", PACK["gz"](counted), vocab),
        "vectors-text": ("v.txt", header + text, functools.partial(vectors, format="text")),
        "vectors-glove": ("v.txt", text, functools.partial(vectors, format="glove")),
        "vectors-binary": ("v.bin", header + rows, functools.partial(vectors, format="binary")),
        "vectors-text-gz": ("v.txt.gz", PACK["gz"](header + text), functools.partial(vectors, format="text")),
        "vectors-binary-xz": ("v.bin.xz", PACK["xz"](header + rows), functools.partial(vectors, format="binary")),
        "vectors-npy": ("v.npy", {"v.npy": written(np.save, MATRIX), "v.words": listed}, npy_vectors),
        "vectors-npy-vocab": ("v.npy", {"v.npy": written(np.save, MATRIX.astype("f8").T.copy().T), "v.vocab": counted}, npy_vectors),
        "vectors-safetensors": ("v.safetensors", {"v.safetensors": tensors, "v.words": listed}, safetensors_vectors),
        "vectors-tsv": ("v.tsv", {"v.tsv": b"".join(b"\t".join(b"%.6f" % x for x in row) + b"\n" for row in MATRIX),
                                  "v.metadata.tsv": b"word\tcount\n" + counted.replace(b" ", b"\t")}, projector_vectors),
        "check-text": ("v.txt", header + text, checked),
        "check-binary": ("v.bin", header + rows, checked),
        "check-npy": ("v.npy", {"v.npy": written(np.save, MATRIX), "v.words": listed}, checked),
        "check-safetensors": ("v.safetensors", {"v.safetensors": tensors, "v.words": listed}, checked),
        **{f"model-word2vec-{name}": ("m.npz", data, model_vectors) for name, data in word2vec.items()},
        **{f"model-lstm-{name}": ("m.npz", data, functools.partial(language_model, load=LstmLM.load)) for name, data in lstm.items()},
        **{f"model-rnnlm-{name}": ("m.npz", written(model.save), functools.partial(language_model, load=Rnnlm.load))
           for name, model in rnnlm.items()},
        "rnnlm-text": ("m", written(rnnlmfile.write, rnnlm["plain"]), rnnlm_file),
        "rnnlm-binary": ("m", written(rnnlmfile.write, rnnlm["plain"], binary=True), rnnlm_file),
        **{f"similarity-{name}": ("s.txt", data, similarity_set) for name, data in SETS.items()},
        "similarity-gz": ("s.gz", PACK["gz"](SETS["tabs"]), similarity_set),
        "analogies": ("q.txt", QUESTIONS, analogy_set),
        "probabilities": ("p.txt", b"0.5 a\n1e-3\tb\n.25\n1\n0\n" * 3, probabilities),
        "log": ("l.json", LOG, log),
        "checkpoint": ("c.npz", checkpoint_file(), checkpoint),
    }  # fmt: skip
    return {
        name: (path, data if isinstance(data, dict) else {path: data}, read)
        for name, (path, data, read) in found.items()
    }
