"""Test `tokenize`, and `--tokenize` and `--field` of the commands that train and that read texts with a model."""

import gzip
import json

import pytest
from common import regex_or_skip

import tiedtools
from tiedtools.vectors.vectors import Vectors

regex_or_skip()
TEXTS = ["The Cat sat. It's THE mat!", "ÉTÉ: 3.14 degrees.\nThe cat slept."] * 20
LINES = ["the cat sat .", "it's the mat !", "été : 3.14 degrees .", "the cat slept ."] * 20
SMALL = ["--epochs", 1, "--min-count", 1, "--threads", 1]
TRAINERS = {
    "w2v": ["w2v", "--size", 4, "--sample", 0],
    "lstm": ["lstm", "--size", 4, "--layers", 1],
    "rnnlm": ["rnnlm", "--hidden", 4, "--doc-dim", 3],
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "raw.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps({"doc": {"text": text}}) + "\n" for text in TEXTS)
    return path


@pytest.fixture
def trained(run, path, tmp_path):
    def train(command):
        model = tmp_path / f"{command}.npz"
        raw = ["--tokenize", "lower,sentences", "--field", "doc.text"]
        out = tmp_path / "out"
        result = run(*TRAINERS[command], *SMALL, *raw, path, "--save-model", model, "--output", out)
        assert result.exit_code == 0, result.stderr
        return model

    return train


def test_tokenize_and_vocab_read_fields(run, path, tmp_path):
    result = run("tokenize", path, "--field", "doc.text", "--lower", "--sentences", "--output", tmp_path / "out")
    assert (result.exit_code, result.stdout_bytes, result.stderr) == (0, b"", "")
    assert (tmp_path / "out").read_text().splitlines() == LINES
    assert run("tokenize", input=b"It's -\xff").stderr.startswith("tiedtools: standard input:1: invalid UTF-8")
    assert run("tokenize", "--errors", "ignore", input=b"It's\xff -\n").stdout_bytes == b"It's -\n"
    (tmp_path / "a").write_text("a b")  # without a final line end
    assert run("tokenize", tmp_path / "a", tmp_path / "a").stdout_bytes == b"a b\na b"
    assert run("tokenize", "--apostrophes", "contractions", input=b"").exit_code == 2
    result = run("vocab", path, "--field", "doc.text", "--tokenize", "lower", "--min-count", 40)
    assert result.stdout_bytes.decode().split("\n")[:3] == ["</s> 60", "the 60", ". 60"]


@pytest.mark.parametrize("command", TRAINERS)
def test_trainers_read_raw_text_and_store_how(command, trained, tmp_path):
    model = tiedtools.load(trained(command))
    assert {*model.model.vocab.words} - {"</s>", "<unk>"} == {w for line in LINES for w in line.split()}
    assert (model.settings["tokenize"], model.settings["field"]) == ("lower,sentences", "doc.text")
    manifest = json.loads((tmp_path / "out.run.json").read_text())
    assert manifest["options"]["tokenize"] == "lower,sentences"
    assert manifest["inputs"][0]["bytes"] == len("".join(json.dumps({"doc": {"text": t}}) + "\n" for t in TEXTS))


def test_training_equals_training_on_words_and_continues_alike(run, trained, tmp_path):
    (words := tmp_path / "words.txt").write_text("\n".join(LINES) + "\n")
    trained("w2v")
    assert run(*TRAINERS["w2v"], *SMALL, words, "--output", tmp_path / "again").exit_code == 0
    assert (tmp_path / "again").read_bytes() == (tmp_path / "out").read_bytes()
    raw, out = tmp_path / "raw.txt", tmp_path / "more"
    raw.write_text("The CAT sat. A dog!\n" * 9)
    more = ["w2v", *SMALL, "--sample", 0, "--init-from", trained("w2v"), "--grow", raw, "--output", out]
    assert run(*more).exit_code == 0 and {"dog", "mat"} < set(Vectors.read(str(out)).words)
    assert run(*more, "--tokenize", "words").exit_code == 0 and "dog!" in Vectors.read(str(out))


def test_texts_are_split_as_in_training(run, trained, path, tmp_path):
    model, raw, words = trained("rnnlm"), tmp_path / "raw.txt", tmp_path / "words.txt"
    raw.write_text("The CAT sat. It's the mat!\n")
    words.write_text("the cat sat .\nit's the mat !\n")
    ppl = [run("ppl", model, *args) for args in ([raw], ["--tokenize", "words", words])]
    assert "lower,sentences" in ppl[0].stderr and not ppl[1].stderr
    first, second = (result.stdout_bytes.split(b"\n", 1)[1] for result in ppl)
    assert first == second and b"2 sentences, 8 words, 0 OOVs" in ppl[0].stdout_bytes
    assert "was trained with" in run("ppl", model, "--tokenize", "default", raw).stderr
    # Lines and records remain lines.
    assert run("docvec", model, raw).stdout_bytes.startswith(b"1 3\n")
    for unit in "line", "doc":
        docvec = run("docvec", model, "--field", "doc.text", "--unit", unit, path)
        assert docvec.stdout_bytes.startswith(f"{len(TEXTS)} 3\n".encode())
    similar = run("similar", model, raw, "--query", "THE CAT", "--json")
    assert json.loads(similar.stdout_bytes)["queries"][0]["text"] == "the cat"
    predicted = run("predict", model, "--json", input=b"THE Cat\nMat\n\a").stdout_bytes.splitlines()
    assert [json.loads(line)["context"] for line in predicted] == ["the cat", "mat", ""]
    generated = run("generate", model, "--prompt", "THE Cat!", "--lines", 1, "--temperature", 0)
    assert generated.stdout_bytes.startswith(b"the cat !")


def test_words_of_tokenized_text(run, trained, tmp_path):
    vectors, raw = trained("w2v"), tmp_path / "raw.txt"
    raw.write_text("THE CAT sat.\nIt's!\n")
    plain = run("docvec", vectors, raw, "--tokenize", "words").stdout_bytes
    assert run("docvec", f"{vectors}:in", raw).stdout_bytes == run("docvec", vectors, raw).stdout_bytes != plain
    table = run("ppl", trained("lstm"), raw, "--words").stdout_bytes.decode().splitlines()
    assert [line.split("\t")[4] for line in table[1:]] == ["the", "cat", "sat", ".", "</s>", "it's", "!", "</s>"]
    model = tiedtools.load(trained("lstm"))
    raw, words = iter(["The CAT sat.", "It's the mat!"]), [["the", "cat", "sat", "."], ["it's", "the", "mat", "!"]]
    assert model.perplexity(raw) == model.perplexity(words)
    assert model.next_words("THE Cat") == model.next_words(["the", "cat"])
    assert "été" in Vectors.read(str(trained("w2v")))


def test_rnnlm_and_translations_of_raw_text(run, tmp_path):
    (raw := tmp_path / "raw.txt").write_text("The cat sat. It's the mat!\n" * 9)
    options = ["-train", raw, "-valid", raw, "-test", raw, "-rnnlm", tmp_path / "model", "-hidden", 3, "-debug", 2]
    result = run("rnnlm", *options, "--tokenize", "lower")
    assert b"it's" in result.stdout_bytes and b"It's" not in result.stdout_bytes and "does not store" in result.stderr
    table = tmp_path / "pairs.csv"
    table.write_text('en,de\n"One cat. Two","Eine Katze. Zwei"\n"Three ""dogs""\nbark","Drei Hunde"\n' * 4)
    settings = dict(size=4, hidden=4, epochs=1, tokenize="lower,sentences", field="en", target_field="de")
    model = tiedtools.Translator(**settings).fit(*[table] * 4)
    assert {'"', "bark", "two"} < set(model.model.source_vocab.words) and "hunde" in model.model.target_vocab.words
    assert len(list(model.translate(iter(["ONE cat. TWO", "Three"])))) == 2
    model.save(tmp_path / "nmt.npz")
    translated = run("translate", tmp_path / "nmt.npz", "--no-unk", input=b"ONE cat. TWO\nThree\n")
    assert translated.exit_code == 0 and translated.stdout_bytes.count(b"\n") == 2


def test_phrases_are_joined_as_in_training(run, tmp_path):
    """The list is stored in model files, files of runs, and the manifest of text vectors."""
    raw, phrases, lstm = tmp_path / "raw.txt", tmp_path / "list.tsv", tmp_path / "lstm.npz"
    raw.write_text("The CAT sat. The cat slept.\n" * 20)
    phrases.write_text("pass\tphrase\twords\tscore\tcount\n1\tthe_cat\tthe cat\t2.5\t9\n")
    joined = run("phrases", "--tokenize", "lower", raw, "--load", phrases).stdout_bytes
    assert joined == b"the_cat sat . the_cat slept .\n" * 20
    assert run("phrases", "--tokenize", "lower,sentences", raw, "--threshold", 1).stdout_bytes[:11] == b"the_cat sat"
    for command, options in {**TRAINERS, "runs": [*TRAINERS["w2v"], "--runs", 2]}.items():
        model = ["--save-model", tmp_path / f"{command}.npz"] * (command != "runs")
        how = ["--tokenize", "lower,sentences", "--phrases", phrases, raw, "--output", tmp_path / command]
        assert run(*options, *SMALL, *how, *model).exit_code == 0
        manifest = json.loads((tmp_path / f"{command}.run.json").read_text())
        assert [source["path"] for source in manifest["inputs"]][:2] == [str(phrases), str(raw)]
    model = tiedtools.load(lstm)
    assert "the_cat" in model.model.vocab.words and model.settings["phrases"] == tiedtools.Phrases.load(phrases)
    assert model.next_words("The CAT") == model.next_words(["the_cat"])
    phrases.unlink()
    new, apart = b"THE cat slept.\n", ["--phrases", "none"]
    for vectors in tmp_path / "w2v", tmp_path / "w2v.npz", f"{tmp_path / 'runs'}:1", tmp_path / "rnnlm.npz":
        results = [run("docvec", vectors, *options, input=new) for options in ([], apart)]
        assert results[0].exit_code == 0 and results[0].stdout_bytes != results[1].stdout_bytes
    for options, words in (["--pairs"], b"the_cat slept .\tthe_cat sat ."), ([], b"the_cat sat ."):
        as_words = run("nbest", lstm, *options, "--tokenize", "words", *apart, input=words)
        as_trained = run("nbest", lstm, *options, input=words.replace(b"the_cat", b"THE Cat").replace(b" .", b"."))
        assert as_trained.stdout == as_words.stdout and "as in training" in as_trained.stderr and not as_words.stderr
    line = json.loads(run("nbest", lstm, "--ids", "--json", input=b"U.1 The cat slept.\n").stdout_bytes)
    assert (line["id"], line["text"]) == ("U.1", "the_cat slept .")
    assert json.loads(run("predict", lstm, "--json", input=b"The CAT").stdout_bytes)["context"] == "the_cat"
    for origin in "w2v.npz", "w2v":
        more = run("w2v", *SMALL, "--sample", 0, "--init-from", tmp_path / origin, raw, "--output", tmp_path / "more")
        assert more.exit_code == 0 and "the_cat" in Vectors.read(str(tmp_path / "more"))
