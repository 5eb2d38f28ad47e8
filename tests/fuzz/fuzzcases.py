"""Cases for the fuzzer: a small valid file of every kind, and a function that reads such a file and checks the result.

The function takes the path of the damaged file, a dict {name: bytes} of all files in its folder, and a random.Random
for options. It raises what the toolkit's reader raises, or AssertionError if the result is not the file's content.
"""

import codecs
import dataclasses
import functools
import itertools
import json
import math
import pathlib
import struct
import tempfile

import fuzzvectors
import numpy as np
import plainreaders as plain
from fasttextcase import model as fasttext
from fitcase import CONFIG, TRAIN, TRAINING, VALID, Stopping, fit
from fitcase import VOCAB as TOY
from fuzzlists import cases as lists
from fuzzlists import written
from fuzzmutations import PACK
from fuzzsubwords import cases as subwords
from fuzztranslation import cases as translation
from fuzzvectors import checked, content, fasttext_vectors, model_vectors, npy_vectors, vectors
from listening import listening
from toylm import ToyLM

from tiedtools.base import interrupts
from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation import analogysets, lexicon, perplexity, rnnlmtest, similarity
from tiedtools.evaluation.pictures import read_log
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.rnnlm import program
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import Run
from tiedtools.runs.progress import Progress
from tiedtools.runs.session import is_sane
from tiedtools.text.encoding import EncodedText, encode
from tiedtools.text.lmtext import LmText
from tiedtools.text.vocab import Vocab
from tiedtools.training.fit import Fit
from tiedtools.vectors.fasttextwriter import write as write_fasttext

WORDS = ["</s>", "the", "caf\u00e9", "a\u00a0b", "<unk>", "once", "3"]
COUNTS = [5, 9, 7, 4, 4, 1, 1]
VOCAB = Vocab(WORDS, np.array(COUNTS))
MATRIX = np.random.default_rng(0).integers(-99, 99, (len(WORDS), 3)) / np.float32(4)
TEXT = "the caf\u00e9 the a\u00a0b once\nthe 3 <unk> the\n\ncaf\u00e9 caf\u00e9 a\u00a0b the\nend of it\n".encode() * 3
SETS = {
    "blanks": b"# a comment\nword1 word2 score\ncat dog 7.5\ncaf\xc3\xa9 tea 6\na b 0.25\n",
    "tabs": b"cat\tdog\t7.5\na\tb c\t1e1\nd\te\t-3\n",
    "commas": b'Word 1,Word 2,POS,Mean\ncat,dog,N,7.5\nhot, "c""o,ld",A,1\n',
    "raters": b"cat-n\tdog-n\t2.5\t1\t4\na-v\tb-j\t3\t3\t3\n",
}
QUESTIONS = b": capitals\na b c d\nb a d c\n: gram1-plural\ncat cats dog dogs\ncar cars bus buses\n"
EPOCHS = [dict(epoch=k, lr=0.5, train_ppl=90.5 - k, valid_ppl=100.25 - k, seconds=1.5 * k) for k in (1, 2, 3)]
LOG = b"".join(json.dumps(line).encode() + b"\n" for line in [*EPOCHS, dict(best_epoch=3, test_ppl=99.5, params=12)])
GLOVE = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, MATRIX.tolist())).encode()
COUNTED = "".join(f"{word} {n}\n" for word, n in zip(WORDS, COUNTS)).encode()


def corpus(path, files, rng):
    errors = rng.choice(("strict", "strict", "replace", "ignore"))
    text = encode([str(path)], errors=errors)
    words = plain.tokens(content(path, files), errors)
    assert [text.vocab.words[k] for k in text.ids] == words and text.tokens_read == len(words)
    assert len(set(text.vocab.words)) == len(text.vocab) and text.vocab.total == len(words)


def training_text(path, files, rng):
    with listening() as told:
        text = LmText.read([str(path)], valid_share=rng.choice((0, 0.1, 0.5)), min_count=rng.choice((1, 2)))
    words = plain.tokens(content(path, files))
    ids = np.concatenate([text.train, *([text.valid] if text.valid is not None else [])])
    found = [text.vocab.words[k] for k in ids]
    assert text.vocab.counts.min() >= 0 and len(set(text.vocab.words)) == len(text.vocab)
    if len(found) == len(words):
        assert all(ours in (word, "<unk>") for ours, word in zip(found, words))
    else:
        assert any("outside the vocabulary" in line for line in told) and set(found) <= set(words)


def scored_text(path, files, rng):
    errors = rng.choice(("strict", "strict", "replace", "ignore"))
    words = [word for piece in lexicon.pieces(str(path), errors) for word in piece]
    lines = content(path, files)
    expected = plain.tokens(lines if lines.endswith(b"\n") else lines + b"\n", errors)
    assert [{"\n": "</s>"}.get(word, word) for word in words] == expected or not content(path, files).strip()
    assert [word for _, line in lexicon.lines(str(path), errors) for word in line] == [w for w in words if w != "\n"]


def vocab(path, files, rng):
    found, counts = Vocab.read(str(path)), plain.vocab(content(path, files))
    counts = {"</s>": counts.pop("</s>", 0), **{word: n for word, n in counts.items() if n}}
    assert dict(zip(found.words, found.counts.tolist())) == counts and found.words[0] == "</s>"
    assert (np.diff(found.counts[1:]) <= 0).all()


def predict(model):
    """Check that the probabilities are valid, unless huge weights make the model report that they are not."""
    assert len(set(model.vocab.words)) == len(model.vocab) and model.vocab.words[0] == "</s>"
    assert model.vocab.counts.min() >= 0 and model.vocab.counts.shape == (len(model.vocab),)
    assert np.isfinite(model.params.values).all()
    ids = (np.arange(6, dtype=np.int32) % len(model.vocab))[:, None]
    try:
        logs, state = perplexity.score(model, ids, np.roll(ids, 1), model.start(1))
    except TiedtoolsError as error:
        assert "NaN" in str(error)
        return
    assert (logs <= 1e-5).all() or not is_sane(model.params.values)  # float32 rounds its huge scores by more


def whole_word2vec(path, files, rng):
    model = Word2Vec.load(str(path), 1)
    assert len(set(model.vocab.words)) == len(model.vocab) == len(model.vectors())
    assert all(np.isfinite(array).all() for array in model.arrays.values())


def language_model(path, files, rng, load):
    predict(load(path, 1))


def rnnlm_file(path, files, rng):
    model = program.read(path, 1)
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
    *lines, _ = content(path, files).removeprefix(codecs.BOM_UTF8).split(b"\n")
    found = list(itertools.islice(rnnlmtest.probabilities(str(path)), len(lines)))
    assert found == [plain.decimal(line.split()[0].decode()) for line in lines]


def log(path, files, rng):
    for epoch in read_log(path):
        for figure in ("epoch", "seconds", "valid_ppl", "train_ppl", "loss"):
            assert epoch.get(figure) is None or math.isfinite(epoch[figure]) and type(epoch[figure]) is not bool


def checkpoint(path, files, rng, make):
    """Resume a run from the checkpoint and train one step."""
    model, training = make()
    run = Fit(model, TRAIN, VALID, training, str(path), resume=True)
    assert run.epoch >= 0 and 0 <= run.steps <= run.batches.steps and run.predicted >= 0
    assert all(map(math.isfinite, (run.nll, run.busy, run.schedule.lr, run.elapsed))) and not math.isnan(run.best_loss)
    assert np.isfinite(run.model.params.values).all()
    assert run.best is None or run.best.shape == run.model.params.values.shape
    with np.errstate(all="ignore"):  # in the toy model
        run.batches.begin(run.epoch % 5)
        run.learner.step(run.batches[min(run.steps, run.batches.steps - 1)], run.state, 0, 0.0)


def toy():
    return ToyLM(TOY, CONFIG), TRAINING


@functools.cache
def recurrent():
    model = Rnnlm(TOY, RnnlmConfig(hidden=3, classes=2, direct=8, bptt=2, bptt_block=4))
    return model, dataclasses.replace(TRAINING, lr=0.1)


def word2vec_checkpoint(path, files, rng):
    """Resume a word2vec run from the checkpoint."""
    run = Run(Word2Vec(TOY, WORD2VEC), word2vec_text(), str(path), resume=True)
    assert 0 <= run.next <= run.jobs and all(np.isfinite(array).all() for array in run.model.arrays.values())
    assert 0 <= run.done <= run.total and math.isfinite(run.elapsed) and len(run.history) <= WORD2VEC.epochs


SIGNS, LINEAR = (Config(size=5, tying=tying) for tying in ("signs", "linear"))
WORD2VEC = Config(size=3, epochs=2, tying="linear")


@functools.cache
def word2vec_text():
    file = tempfile.TemporaryFile(buffering=0)
    file.write(TRAIN)
    return EncodedText(TOY, file, len(TRAIN), len(TRAIN))


def word2vec_checkpoint_file():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "c.npz")
        Run(Word2Vec(TOY, WORD2VEC), word2vec_text(), str(path)).go(Progress())
        return path.read_bytes()


def checkpoint_file(make):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "c.npz")
        try:
            model, training = make()
            fit(model, TRAIN, VALID, training, Stopping(3), str(path))
        except KeyboardInterrupt:
            interrupts.received.clear()
        return path.read_bytes()


def kinds():
    """Return a dict {kind: (file name, {name: valid bytes}, reader)}."""
    files = {**texts(), **pairs_of_files(), **models(), **sets(), **lists(), **subwords(), **translation()}
    whole = lambda path, data: data if isinstance(data, dict) else {path: data}
    return {name: (path, whole(path, data), read) for name, (path, data, read) in files.items()}


def texts():
    """Return cases for corpora, vocabularies, and vectors, which are read sequentially."""
    rows = zip(WORDS, MATRIX)
    text = b"%d %d\n" % MATRIX.shape + GLOVE
    binary = b"7 3\n" + b"".join(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n" for word, row in rows)
    of = lambda format: functools.partial(vectors, format=format)
    return {
        "text-plain": ("t", TEXT, corpus),
        **{f"text-{ending}": (f"t.{ending}", pack(TEXT), corpus) for ending, pack in PACK.items()},
        "text-train": ("t", TEXT, training_text),
        "text-score": ("t.txt", TEXT, scored_text),
        "vocab": ("v", COUNTED, vocab),
        "vocab-gz": ("v.gz", PACK["gz"](COUNTED), vocab),
        "vectors-text": ("v.txt", text, of("text")),
        "vectors-glove": ("v.txt", GLOVE, of("glove")),
        "vectors-binary": ("v.bin", binary, of("binary")),
        "vectors-text-gz": ("v.txt.gz", PACK["gz"](text), of("text")),
        "vectors-binary-xz": ("v.bin.xz", PACK["xz"](binary), of("binary")),
        "vectors-starspace": ("v.tsv", GLOVE.replace(b" ", b"\t"), of("glove")),
        **{f"vectors-fasttext-{name}": ("m.bin", data, fasttext_vectors) for name, data in fasttext_models()},
        "check-fasttext": ("m.bin", fasttext(WORDS)[0], checked),
        "check-text": ("v.txt", text, checked),
        "check-binary": ("v.bin", binary, checked),
    }


def fasttext_models():
    """Yield (name, bytes) of models of fastText."""
    yield "subwords", fasttext(WORDS)[0]
    yield "pruned", fasttext(WORDS, kept={3: 1, 7: 0})[0]
    yield "supervised", fasttext(WORDS, labels=["__label__a"], header=dict(model=3, word_ngrams=2))[0]
    yield "quantized", written(write_fasttext, WORDS, MATRIX, quantized=True)


def pairs_of_files():
    """Return cases for vectors whose words are in a separate file."""
    other = dict(dtype="F32", shape=[3], data_offsets=[0, 12])
    header = dict(b=other, x=dict(dtype="F32", shape=[7, 3], data_offsets=[12, 96]), __metadata__={})
    header = json.dumps(header).encode()
    tensors = struct.pack("<Q", len(header)) + header + bytes(12) + MATRIX.tobytes()
    listed = "".join(f"{word}\n" for word in WORDS).encode()
    npy = {"v.npy": written(np.save, MATRIX), "v.words": listed}
    counted = {"v.npy": written(np.save, np.asfortranarray(MATRIX, "f8")), "v.vocab": COUNTED}
    tensors = {"v.safetensors": tensors, "v.words": listed}
    numbers = b"".join(b"\t".join(b"%.6f" % x for x in row) + b"\n" for row in MATRIX)
    projector = {"v.tsv": numbers, "v.metadata.tsv": b"word\tcount\n" + COUNTED.replace(b" ", b"\t")}
    header = json.dumps(dict(embeddings=dict(dtype="F16", shape=[8, 3], data_offsets=[0, 48]))).encode()
    matrix = struct.pack("<Q", len(header)) + header + MATRIX.astype("f2").tobytes() + bytes(6)
    model = dict(type="WordLevel", vocab=dict(zip([*WORDS, "[UNK]"], range(8))), unk_token="[UNK]")
    folder = {"m.safetensors": matrix, "t.json": json.dumps(dict(added_tokens=[], model=model)).encode()}
    return {
        "vectors-folder": ("m.safetensors", folder, fuzzvectors.folder_vectors),
        "vectors-npy": ("v.npy", npy, npy_vectors),
        "vectors-npy-vocab": ("v.npy", counted, npy_vectors),
        "vectors-npy-hyperwords": ("v.npy", {"v.npy": npy["v.npy"], "v.vocab": listed}, npy_vectors),
        "vectors-safetensors": ("v.safetensors", tensors, fuzzvectors.safetensors_vectors),
        "vectors-tsv": ("v.tsv", projector, fuzzvectors.projector_vectors),
        "check-npy": ("v.npy", npy, checked),
        "check-safetensors": ("v.safetensors", tensors, checked),
    }


def models():
    """Return cases for model files and checkpoints."""
    small = dict(hidden=3, classes=2)
    document = Rnnlm(VOCAB, RnnlmConfig(**small, doc_dim=2, sentences=True, learn_start=True))
    direct = Rnnlm(VOCAB, RnnlmConfig(**small, direct=8, bptt=2))
    word2vec = lambda **options: ("m.npz", written(Word2Vec(VOCAB, Config(size=3, **options)).save), model_vectors)
    of = lambda kind, model: ("m.npz", written(model.save), functools.partial(language_model, load=kind.load))
    lstm = lambda **options: of(LstmLM, LstmLM(VOCAB, LstmConfig(size=4, hidden=5, layers=1, **options)))
    run = lambda make: ("c.npz", checkpoint_file(make), functools.partial(checkpoint, make=make))
    return {
        "model-word2vec-untied": word2vec(),
        "model-word2vec-signs": word2vec(tying="signs"),
        "model-word2vec-linear": word2vec(tying="linear", init_linear="uniform"),
        "model-word2vec-hs": word2vec(hs=True, negative=0),
        "model-lstm-linear": lstm(tying="linear", linear_bias=True),
        "model-lstm-sampled": lstm(sampled=3, dropout_kind="gal", drop_word=0.1),
        "model-rnnlm-document": of(Rnnlm, document),
        "model-rnnlm-direct": of(Rnnlm, direct),
        "rnnlm-text": ("m", written(program.write, direct), rnnlm_file),
        "rnnlm-binary": ("m", written(program.write, direct, binary=True), rnnlm_file),
        "checkpoint-toy": run(toy),
        "checkpoint-rnnlm": run(recurrent),
        "checkpoint-word2vec": ("c.npz", word2vec_checkpoint_file(), word2vec_checkpoint),
        "load-word2vec": (*word2vec()[:2], whole_word2vec),
        "load-word2vec-signs": ("m.npz", written(Word2Vec(VOCAB, SIGNS).save), whole_word2vec),
        "load-word2vec-linear": ("m.npz", written(Word2Vec(VOCAB, LINEAR).save), whole_word2vec),
    }


def sets():
    """Return cases for test sets and small lists."""
    return {
        **{f"similarity-{name}": ("s.txt", data, similarity_set) for name, data in SETS.items()},
        "similarity-gz": ("s.gz", PACK["gz"](SETS["tabs"]), similarity_set),
        "analogies": ("q.txt", QUESTIONS, analogy_set),
        "probabilities": ("p.txt", b"0.5 a\n1e-3\tb\n.25\n1\n0\n" * 3, probabilities),
        "log": ("l.json", LOG, log),
    }
