"""Time slices: vectors of several texts in one space."""

import json

import numpy as np
import pytest

import tiedtools as tt
from tiedtools.api.slices import read_slices, train_slices

RNG = np.random.default_rng(5)
CLUSTERS = [[f"{name}{k}" for k in range(6)] for name in "abcd"]
SETTINGS = dict(size=10, epochs=4, min_count=1, threads=1, sample=0.0, architecture="skipgram", window=4)


def text(cluster, n=1200):
    """Return sentences in which `word` occurs among the words of one cluster."""
    lines = []
    for k in range(n):
        line = [*RNG.permutation(CLUSTERS[k % 4])[:5]]
        lines.append(" ".join([*line[:2], "word", *line[2:]] if k % 4 == cluster else line))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, cluster in ("1810s", 0), ("1820s", 0), ("1830s", 1):
        (folder / f"{name}.txt").write_text(text(cluster) + ("only here\n" * 5 if name == "1810s" else ""))
    return [str(folder / f"{name}.txt") for name in ("1810s", "1820s", "1830s")]


@pytest.mark.parametrize("tying", ["untied", "tied"])
def test_the_word_that_changed_is_found(texts, tmp_path, run, tying):
    train_slices(dict(SETTINGS, tying=tying), texts, str(tmp_path / "s"), runs=3)
    found = json.loads(run("shift", tmp_path / "s", "--json").stdout)
    assert (found["a"], found["b"]) == ("1810s", "1830s") and {"only", "here"} == {*found["only_a"]}
    assert found["results"][0]["word"] == "word" and found["results"][0]["low"] > found["results"][1]["change"]
    path = json.loads(run("shift", tmp_path / "s", "word", "--json").stdout)["results"]
    assert [line["slice"] for line in path] == ["1810s", "1820s", "1830s"]
    assert path[0]["cosine"] == pytest.approx(1, abs=1e-3)
    assert path[1]["cosine"] > path[2]["cosine"]
    near = [[word for word in line["neighbors"] if word not in ("</s>", "only", "here")] for line in path]
    assert [{word[0] for word in words[:2]} for words in near] == [{"a"}, {"a"}, {"b"}]


def test_slices_of_untied_vectors_have_the_frozen_output_of_the_compass(texts, tmp_path, run):
    """A slice is a training that continues from the compass; words that it lacks are missing in it."""
    args = "-size 10 -iter 4 -min-count 1 -threads 1 -sample 0 -cbow 0 -window 4".split()
    assert run("w2v", "--slices", *texts, *args, "-output", tmp_path / "s").exit_code == 0
    slices = read_slices(str(tmp_path / "s"))
    model = tt.Word2Vec(**SETTINGS).fit(texts[1], init_from=tmp_path / "s" / "compass.npz", freeze="out")
    (_, matrix), words = slices["1820s"][0], slices["1820s"][0][0]
    assert "only" not in words and "only" in slices["1810s"][0][0]
    np.testing.assert_array_equal(matrix, [model.vectors[word].astype(np.float16) for word in words])
    compass = tt.load(tmp_path / "s" / "compass.npz").model
    order = [compass.vocab.words.index(word) for word in model.model.vocab.words]
    np.testing.assert_array_equal(model.model.emb_out, compass.emb_out[order])


def test_an_interrupted_training_is_continued(texts, tmp_path, run):
    whole, part = tmp_path / "whole", tmp_path / "part"
    train_slices(SETTINGS, texts, str(whole))

    def stop(trainer):
        if part.joinpath("1810s.runs").exists():
            raise KeyboardInterrupt
        trainer.train()

    with pytest.raises(KeyboardInterrupt):
        train_slices(SETTINGS, texts, str(part), stop)
    assert not part.joinpath("1820s.runs").exists()
    trained = []
    train_slices(SETTINGS, texts, str(part), lambda trainer: (trained.append(1), trainer.train()))
    assert len(trained) == 2
    for name in "1810s.runs", "1820s.runs", "1830s.runs":
        assert (part / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    "options", [["--valid", "x"], ["--save-model", "m.npz"], ["--checkpoint", "c"], ["-output", "-"]]
)
def test_options_of_a_single_training_are_refused(texts, tmp_path, run, options):
    output = [] if "-output" in options else ["-output", tmp_path / "s"]
    result = run("w2v", "--slices", *texts, *options, *output)
    assert result.exit_code == 2 and not (tmp_path / "s").exists()
    assert run("w2v", "--slices", texts[0], texts[0], "-output", tmp_path / "s").exit_code == 1
    (tmp_path / "empty.txt").write_text("\n")
    result = run("w2v", "--slices", texts[0], tmp_path / "empty.txt", "-output", tmp_path / "s")
    assert result.stderr.startswith(f"tiedtools: {tmp_path / 'empty.txt'}: ") and not (tmp_path / "s").exists()
    assert run("shift", tmp_path).exit_code == 1


def test_align(tmp_path, run):
    """Vectors rotated and moved agree after alignment; the residual of the others shows in the table."""
    words = [f"w{k}" for k in range(50)]
    one = tt.Vectors(words, RNG.standard_normal((50, 6)))
    turned = one.matrix @ np.linalg.qr(RNG.standard_normal((6, 6)))[0] + 3
    tt.Vectors([*words, "new"], np.concatenate([turned, np.ones((1, 6))])).write(tmp_path / "b.txt")
    one.write(tmp_path / "a.txt")
    args = ["align", tmp_path / "a.txt", tmp_path / "b.txt", "--output", tmp_path / "c.txt"]
    plain = json.loads(run(*args, "--json").stdout)["results"]
    assert len(plain) == 1 and plain[0]["words"] == 50 and plain[0]["cosine"] < 0.9
    found = json.loads(run(*args, "--center", "--no-normalize", "--json").stdout)["results"]
    assert found[0]["cosine"] == pytest.approx(1, abs=1e-6)
    aligned = tt.Vectors.read(tmp_path / "c.txt")
    assert aligned.words[-1] == "new"
    np.testing.assert_allclose(aligned.matrix[:-1], one.matrix, atol=1e-5)
    assert run("align", tmp_path / "a.txt", tmp_path / "b.txt", "--output", tmp_path / "a.txt").exit_code == 2
