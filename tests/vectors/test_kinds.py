"""Test that `check` names every kind of file that the program writes, and finds nothing wrong with healthy ones."""

import json

import numpy as np
import pytest

from tiedtools.files import modelfile
from tiedtools.text import morphs
from tiedtools.vectors.check import Check, kind_of

TEXT = "the cat sat on the mat .\nthe dog lay on the log .\na cow ate the old grass .\n" * 30


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIEDTOOLS_CACHE", str(tmp_path))
    (tmp_path / "text").write_text(TEXT)
    return tmp_path


W2V = "w2v text -size 4 -iter 1 -min-count 1 -threads 1 -debug 0"
LSTM = "lstm text --size 4 --hidden 4 --epochs 1 --threads 1 -debug 0 --steps 5 --batch 2"
RNNLM = "rnnlm -train text -hidden 4 -class 3 --max-iter 1 -debug 0 --threads 1 -direct 0"
RUNS = {
    f"{W2V} -output v.txt --save-model m --save-vocab c --log-json l --checkpoint k --manifest n": {
        "v.txt": "text, 15 words of 4 numbers, all well",
        "m": "model, 15 words of 4 numbers, all well",
        "c": "vocabulary, 15 words, all well; `-read-vocab` reads it",
        "l": "training log, all well; `tiedtools plot curves` reads it",
        "k": "checkpoint, all well; `--checkpoint` with `--resume` continues from it",
        "n": "run manifest, all well; `tiedtools rerun` reads it",
        "v.txt.run.json": "run manifest, all well; `tiedtools rerun` reads it",
    },
    f"{W2V} -output v -classes 3 --save-vocab c.gz": {
        "v": "classes of words, not checked; written by `w2v -classes`",
        "c.gz": "vocabulary, 15 words, all well; `-read-vocab` reads it",
    },
    f"{LSTM} -output v --save-model m --checkpoint k --log-json l": {
        "v": "text, 15 words of 4 numbers, all well",
        "m": "model, 15 words of 4 numbers, all well",
        "k": "checkpoint, all well; `--checkpoint` with `--resume` continues from it",
        "l": "training log, all well; `tiedtools plot curves` reads it",
    },
    f"{RNNLM} -rnnlm m": {"m": "model, 15 words of 4 numbers, all well"},
    f"{RNNLM} -rnnlm m -binary": {"m": "model, 15 words of 4 numbers, all well"},
    "vocab text -min-count 1 -output c": {"c": "vocabulary, 15 words, all well; `-read-vocab` reads it"},
    "vocab text --json -output c": {"c": "JSON, all well; written by a command with --json"},
    "segment text --chars --types -output s": {
        "s": "segmentation, not checked; `--segmentation` of `tiedtools lstm` reads it"
    },
}


@pytest.mark.parametrize("command", RUNS)
def test_outputs_are_recognized(run, here, command):
    assert run(*command.split()).exit_code == 0
    for name, verdict in RUNS[command].items():
        result = run("check", name)
        assert (result.exit_code, result.stdout) == (0, f"{name}: {verdict}\n")


VECTORS = "4 2\nthe 1 2\ncat 2 1\nsat 1 1\non 3 1\n"
PRINTED = {
    "nn v the": "words and scores, not checked; `tiedtools eval-sim --set` reads them if they are pairs of words",
    "analogy v the cat sat": "words and scores, not checked; `tiedtools eval-sim --set` reads them if they are pairs of"
    " words",
    "nn v the --with v": "table, not checked; written by `nn` or `analogy`",
    "analogy v the cat sat --with v": "table, not checked; written by `nn` or `analogy`",
    "nn v the --json": "JSON, all well; written by a command with --json",
    "pca v": "table, not checked; written by a command that evaluates vectors",
    "compare v v": "table, not checked; written by a command that evaluates vectors",
    "eval-sim v --set pairs --bootstrap 0": "table, not checked; written by a command that evaluates vectors",
    "eval-analogy v --set questions": "table, not checked; written by a command that evaluates vectors",
    "check v --json": "JSON, all well; written by a command with --json",
}


@pytest.mark.parametrize("command", PRINTED)
def test_printed_results_are_recognized(run, here, command):
    """Also under a name like that of vectors; JSON from standard input is recognized by its first lines alone."""
    (here / "v").write_text(VECTORS)
    (here / "pairs").write_text("the cat 1\nthe sat 2\ncat sat 3\n")
    (here / "questions").write_text(": s\nthe cat sat the\n")
    printed, verdict = run(*command.split()).stdout_bytes, PRINTED[command]
    for name in "f", "f.tsv":
        (here / name).write_bytes(printed)
        result = run("check", name)
        assert (result.exit_code, result.stdout) == (0, f"{name}: {verdict}\n")
    result = run("check", "-", input=printed)
    assert (result.exit_code, result.stdout) == (0, f"-: {verdict.replace('all well', 'not checked')}\n")


SAMPLES = {
    "attention weights": '{"line": 1, "source": ["a"], "target": ["b"], "weights": [[1.0]]}\n',
    "n-best list": "0 ||| a cat ||| -1.25\n0 ||| the cat ||| -2.5\n",
    "log probabilities": "-28.776737\n-inf\n-0.250000\n",
    "words and scores": "1\tthe\t0.0867439\n1\t</s>\t0.0739887\n1\t5\t0.05\n",
    "words and scores ": "old\tnew\t1.58\r\nsmart\tintelligent\t9.2\r\n",
    "words and scores  ": "take remove 6.81\ntake\tremove\tV\t6.81\tSYNONYMS\n",
    "similar sentences": "a cat sat\t139\t0.9978\tthe cat sat\na cat sat\t40\t0.9916\tthe dog 2\n",
    "perplexity": "file text: 3 sentences, 5 words, 0 OOVs\n0 zeroprobs, logprob= -8.7 ppl= 12.4 ppl1= 56.3\n",
    "log of rnnlm": "\niter: 0\nvalid log probability: -2562.1\n",
    "analogy questions": ": capitals\nAthens Greece Oslo Norway\n",
    "BLEU": "BLEU|nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0 = 38.9\n",
    "picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".decode("latin-1"),
    "segmentation": "un-lock\tun lock\n1984\t19 84\n",
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_samples_are_recognized(here, kind):
    (here / "f").write_bytes(SAMPLES[kind].encode("latin-1"))
    check = Check("f")
    assert check.format == kind.strip() and check.problems == {} and check.use


def test_morphs_are_recognized(here):
    with open("f", "wb") as file:
        morphs.write(file, [(1, ["un", "lock"]), (2, ["a"])])
    check = Check("f")
    assert (check.format, check.rows, check.checked, check.problems) == ("morphs", 2, True, {})


@pytest.mark.parametrize(
    "text, position, problem",
    [
        ("</s> 3\nthe 2\nthe 1\n", ":3", "duplicate word 'the'; remove one line"),
        ('{\n  "tiedtools": "0.2.0"\n}\n', "", "not a run manifest, or corrupt"),
        ('{"epoch": 1}\n{"epoch": 2, "l', ":2", "not a JSON object; get the whole file or correct the line"),
        ("# Morfessor Baseline segmentation\n1 a\nb\n", ":3", "expected `count morph + morph`"),
    ],
)
def test_damage_is_located(run, here, text, position, problem):
    (here / "f").write_text(text)
    result = run("check", "f")
    assert result.exit_code == 1 and result.stdout.startswith(f"f{position}: ") and problem in result.stdout
    assert "all well" not in result.stdout


@pytest.mark.parametrize(
    "text",
    [
        "the 5\nof 3\n",  # vectors of one number, or a vocabulary without </s>
        "</s> 0.5\nthe 2\n",
        "a\t1\t2\nb\tx\t2\nc\t1\t2\n",
        "1 2\na 0.5 1\n",
        "x\t0.5\ny\t5\n",
        "1984\t0.5\t2\nb\t1\t2\n",
        "old new\n",
        ": 0.5 1\n, 2 3\n",
        "word\t0.5\t1\na\t2\t3\n",
    ],
)
def test_vectors_are_not_mistaken(text):
    assert kind_of(text.encode()) is None


@pytest.mark.parametrize("kind", ["lstm", "checkpoint"])
def test_arrays_of_models_are_checked(run, here, kind):
    arrays = {"emb_in": np.ones((2, 2), "f4"), "cell.W": np.float32([1, np.nan])}
    with open("m", "wb") as file:
        modelfile.save(file, kind, {}, ["a", "b"], arrays)
    lines = run("check", "m").stdout.splitlines()
    assert lines[0] == "m: the array cell.W has values that are nan or infinite" and "1 problem" in lines[1]
    with open("m", "wb") as file:
        modelfile.save(file, kind, {}, ["a", "b"], {**arrays, "cell.W": arrays["emb_in"]})
    assert run("check", "m").exit_code == 0


def test_lists_of_words_name_their_matrix(run, here):
    (here / "v").write_text(VECTORS)
    for name, words in (("b.npy", "b.words"), ("c.tsv", "c.metadata.tsv"), ("vectors.tsv", "metadata.tsv")):
        assert run("convert", "v", name).exit_code == 0
        told = f"{words}: list of words, not checked; `tiedtools check {name}` checks it with its vectors\n"
        result = run("check", words)
        assert (result.exit_code, result.stdout) == (0, told)


def test_a_format_that_is_given_is_checked(run, here):
    (here / "f").write_text("</s> 3\nthe 2\n")
    assert run("check", "f", "--format", "glove").stdout == "f: glove, 2 words of 1 numbers, all well\n"
    assert json.loads(run("check", "f", "--json").stdout)["files"][0] == {
        "file": "f", "format": "vocabulary", "words": 2, "dim": None, "problems": {}
    }  # fmt: skip


def test_texts_are_named_in_the_problem(run, here):
    result = run("check", "text")
    assert result.exit_code == 1 and result.stdout.splitlines() == [
        "text:1: is neither a word2vec header 'V E' nor a word and numbers; is it a text, for `tiedtools vocab`?",
        "text: no format, 0 words of 0 numbers, 1 problem",
    ]
