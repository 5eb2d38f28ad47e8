"""Test model files of the LSTM language model, and its vectors."""

import numpy as np
import pytest
from filecase import MODEL_DAMAGES, rewrite, save
from lmcase import CONFIGS, VOCAB, model, train, window

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores
from tiedtools.files.modelfile import load_language_model
from tiedtools.models.lm.model import LstmLM


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.mark.parametrize("name, dtype", [
    ("untied", "float32"), ("tied", "float64"), ("linear with bias", "float32"), ("tied, projection", "float64"),
    ("gal", "float32"), ("sampled, tied", "float32"),
])  # fmt: skip
def test_loading_restores_the_saved_model(name, dtype, path):
    m = model(dtype=dtype, **CONFIGS[name])
    train(m)
    save(m, path)
    assert type(load_language_model(path)) is LstmLM
    loaded = LstmLM.load(path, m.config.threads)
    assert loaded.config == m.config and loaded.vocab.words == VOCAB.words
    assert loaded.vocab.counts.tolist() == VOCAB.counts.tolist()
    assert loaded.params.values.tobytes() == m.params.values.tobytes()
    ids, targets, state = window(m)
    np.testing.assert_array_equal(loaded.score(ids, targets, state)[0], m.score(ids, targets, state)[0])
    m.train_step(ids, targets, state, 7), loaded.train_step(ids, targets, state, 7)
    np.testing.assert_array_equal(loaded.params.grads, m.params.grads)


def test_loading_uses_the_thread_count_of_this_machine(path):
    """Many more threads than cores would spend most of the time waiting for each other."""
    m = model(threads=available_cores() + 1)
    save(m, path)
    for loaded in LstmLM.load(path), load_language_model(path):
        assert loaded.config.threads == loaded.params.team.threads == available_cores()
    loaded = LstmLM.load(path, threads=2)
    assert loaded.config.threads == loaded.params.team.threads == 2
    np.testing.assert_allclose(loaded.score(*window(m))[0], m.score(*window(m))[0], rtol=1e-12)


DAMAGES = {
    **MODEL_DAMAGES,
    "array missing": lambda header, words, arrays: arrays.pop("lstm1.W_h"),
    "different dimension": lambda header, words, arrays: header["config"].update(size=12),
    "option of the wrong type": lambda header, words, arrays: header["config"].update(layers="two"),
    "boolean for a number": lambda header, words, arrays: header["config"].update(layers=True),
    "option that is nan": lambda header, words, arrays: header["config"].update(tau=float("nan")),
    "duplicate word": lambda header, words, arrays: words.__setitem__(3, words[4]),
    "no </s>": lambda header, words, arrays: words.__setitem__(0, "x"),
    "negative count": lambda header, words, arrays: arrays["counts"].__setitem__(3, -1),
    "fractional counts": lambda header, words, arrays: arrays.update(counts=arrays["counts"] / 2),
    "not finite": lambda header, words, arrays: arrays["emb_in"].__setitem__((3, 1), np.nan),
    "integer weights": lambda header, words, arrays: arrays.update({"emb_in": arrays["emb_in"].astype(int)}),
    "options not a mapping": lambda header, words, arrays: header.update(config=[]),
    "different kind": lambda header, words, arrays: header.update(kind="word2vec"),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_errors_name_the_corrupt_file(change, path):
    save(model(), path)
    rewrite(path, change)
    with pytest.raises(TiedtoolsError, match=f"^{path}: .*(corrupt|of kind)"):
        LstmLM.load(path)


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_errors_name_the_truncated_file(keep, path):
    save(model(), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(TiedtoolsError, match=f"^{path}: .*corrupt"):
        LstmLM.load(path)


def test_vectors():
    for m in model(), model(tying="tied"):
        E, W = m.params["emb_in"], m.params["emb_out"]
        expected = {"in": E, "out": W, "sum": E + W, "concat": np.hstack([E, W])}
        for which, matrix in expected.items():
            vectors = m.vectors(which)
            assert vectors.words == VOCAB.words
            np.testing.assert_array_equal(vectors.matrix, matrix.astype(np.float32))
