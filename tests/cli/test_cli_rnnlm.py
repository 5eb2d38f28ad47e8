"""Test the command `rnnlm`: for word vectors, and as a replacement for the program rnnlm."""

import dataclasses
import json
import os
import re
import signal

import numpy as np
import pytest

from tiedtools.base import interrupts
from tiedtools.cli.report import LmReport
from tiedtools.models.rnnlm import program as rnnlmrun
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.models.rnnlm.program import load_rnnlm
from tiedtools.vectors.vectors import Vectors

pytestmark = pytest.mark.usefixtures("no_signals")
RNG = np.random.default_rng(0)


def lines(n):
    pick = RNG.choice
    return "".join(f"the {pick(['cat', 'dog', 'owl'])} sat on the {pick(['mat', 'box', 'log'])}\n" for _ in range(n))


TRAIN, VALID = lines(150), lines(20)
LINE = re.compile(
    r"Iter:  +(\d+)\tAlpha: (\d\.\d{6})\t   TRAIN entropy: \d\.\d{4}    Words/sec: \d+\.\d   VALID entropy: (\d\.\d{4})"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "train").write_text(TRAIN)
    (tmp_path / "valid").write_text(VALID)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rnnlm(run, folder):
    return lambda *args, **options: run("rnnlm", "-hidden", 7, *args, **options)


@pytest.fixture
def original(rnnlm):
    """Run a command line of the program rnnlm; return its result, which must be a success."""

    def original(*args, path="m"):
        result = rnnlm("-train", "train", "-valid", "valid", "-rnnlm", path, "-class", 3, *args)
        assert result.exit_code == 0, result.stderr
        return result

    return original


# For word vectors


def test_vectors_of_a_text_and_other_outputs(rnnlm, folder):
    result = rnnlm("--doc-dim", 3, input=TRAIN.encode())
    assert result.exit_code == 0, result.stderr
    rows = result.stdout_bytes.split(b"\n")
    assert rows[0] == b"10 7" and rows[1].startswith(b"</s> ") and rows[-1] == b"" and len(rows) == 12
    assert "validation: the last 105 of the text's 1,050 tokens" in result.stderr
    assert "model: RNN, hidden layer of 7, document vector of 3, 10 classes, " in result.stderr
    assert re.search(r"^epoch 1: lr 0.1, train ppl .*, valid ppl ", result.stderr, re.M)
    assert rnnlm("--doc-dim", 3, "train").stdout_bytes == result.stdout_bytes
    args = ["-max-iter", 2, "--log-json", "log", "-output", "v", "-binary", "--write", "concat", "--save-model", "s"]
    result = rnnlm("train", "-valid", "valid", "-test", "valid", "-rnnlm", "m", *args)
    assert result.exit_code == 0 and result.stdout_bytes == b"", result.stderr
    *epochs, last = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    assert [epoch["epoch"] for epoch in epochs] == [1, 2] and last["best_epoch"] == 2
    assert last["test_ppl"] == pytest.approx(epochs[1]["valid_ppl"])
    assert f"test ppl {last['test_ppl']:.2f} on 140 tokens, model of epoch 2" in result.stderr
    model = load_rnnlm("m")
    np.testing.assert_array_equal(Vectors.read("v").matrix, model.vectors("concat").matrix)
    np.testing.assert_array_equal(Rnnlm.load("s").params.values, model.params.values)


# As a replacement for rnnlm


def test_output_has_the_format_of_rnnlm(original, folder):
    result = original()
    begin, size, words, *epochs = result.stdout.splitlines()
    assert [begin, size, words] == ["Starting training using file train", "Vocab size: 10", "Words in train file: 1050"]
    found = [LINE.fullmatch(line).groups() for line in epochs]
    assert [int(k) for k, *_ in found] == list(range(len(epochs))) and len(epochs) > 2
    rates = [float(rate) for _, rate, _ in found]
    assert rates[0] == 0.1 and rates[-1] < 0.1
    log = (folder / "m.output.txt").read_text()
    told = re.findall(r"\niter: (\d+)\nvalid log probability: (-\d+\.\d{6})\nPPL net: (\d+\.\d{6})\n", log)
    for (k, _, entropy), (iteration, logp, ppl) in zip(found, told, strict=True):
        assert k == iteration and np.log2(float(ppl)) == pytest.approx(float(entropy), abs=1e-4)
        assert float(logp) == pytest.approx(-140 * np.log10(float(ppl)), abs=1e-3)
    assert sorted(path.name for path in folder.iterdir()) == ["m", "m.output.txt", "m.run.json", "train", "valid"]
    progress = load_rnnlm("m").progress
    assert progress["iter"] == len(epochs) and progress["halving"] == 1 and progress["alpha"] == rates[-1]
    assert (progress["train"], progress["valid"]) == ("train", "valid")


def test_quiet_prints_one_line_per_epoch(original):
    result = original("-debug", 0, "-max-iter", 2)
    assert result.stderr == "" and [bool(LINE.fullmatch(line)) for line in result.stdout.splitlines()] == [True] * 2


DECAY = ["--schedule", "decay", "--decay", 2, "--decay-after", 5]


@pytest.mark.parametrize("args", [[], ["-binary", "-bptt", 2, "-independent"], ["--doc-dim", 3], DECAY], ids=str)
def test_training_resumes_from_the_model_file(original, folder, args):
    """Parameters, learning rate, and halving are identical to those of an uninterrupted run."""
    original(*args, "-max-iter", 7, path="whole")
    for epochs in (1, 4, 7):
        result = original(*args, "-max-iter", epochs, path="m")
        if epochs > 1:
            assert "Restoring network from file to continue training..." in result.stdout.splitlines()
            assert "Vocab size" not in result.stdout
    whole, parts = load_rnnlm("whole"), load_rnnlm("m")
    assert args != DECAY or "Alpha: 0.025000" in result.stdout.splitlines()[-1]
    assert whole.params.values.tobytes() == parts.params.values.tobytes()
    assert whole.progress == {**parts.progress, "llogp": pytest.approx(parts.progress["llogp"], abs=1e-5)}
    assert (folder / "m").read_bytes()[:2] == (b"PK" if "--doc-dim" in args else b"ve")


def test_settings_of_the_file_and_of_the_command(original):
    original("-max-iter", 1)
    assert "Alpha: 0.030000" in original("-max-iter", 2, "-alpha", 0.03).stdout
    assert "Alpha: 0.030000" in original("-max-iter", 3).stdout
    assert "m: already complete (3 epochs)" in original("-max-iter", 1, "-beta", 1e-5).stderr
    config = dataclasses.replace(RnnlmConfig(), beta=1e-4, cutoff=3.0, seed=5, threads=2, defer=True)
    restored = rnnlmrun.ModelFile("m", False, 0).restore(config)
    assert restored.config == dataclasses.replace(config, hidden=7, classes=3)
    assert (restored.params["start_hid"] == np.float32(0.1)).all()


def test_sizes_come_from_the_file(original, folder):
    original("-max-iter", 1)
    (folder / "train").write_text("the zebra sat\n" * 30)
    (folder / "vocab").write_text("zebra 3\n")
    sizes = "-hidden", 9, "-class", 4, "-min-count", 10**6, "-max-vocab", 3, "-read-vocab", folder / "vocab"
    result = original("-max-iter", 2, "-direct-order", 2, *sizes)
    others = "--class, --direct-order, --hidden, --max-vocab, --min-count, --read-vocab"
    assert f"m: these options are ignored; the model file's settings apply: {others}\n" in result.stderr
    assert "train: 30 words outside the vocabulary, which has no <unk>, are not predicted" in result.stderr
    assert load_rnnlm("m").config.hidden == 7 and len(load_rnnlm("m").vocab) == 10 and "no effect" not in result.stderr


def test_one_iteration_without_validation(rnnlm, folder, original):
    for k in range(2):
        result = rnnlm("-train", "train", "-rnnlm", "m", "-one-iter")
        assert re.search(rf"^Iter:   {k}\tAlpha: 0.100000\t.*Words/sec: \d+\.\d   $", result.stdout, re.M)
        assert "VALID" not in result.stdout and "Words in train file: 1050" in result.stdout or k
    assert not (folder / "m.output.txt").exists() and load_rnnlm("m").progress["iter"] == 2
    assert load_rnnlm("m").progress["llogp"] == -1e8  # unknown
    (folder / "m").write_text("")
    assert "Restoring" not in original("-max-iter", 1).stdout and load_rnnlm("m").progress["iter"] == 1
    original()
    finished = load_rnnlm("m").progress["alpha"]
    rnnlm("-train", "train", "-rnnlm", "m", "-one-iter")
    assert load_rnnlm("m").progress["alpha"] == finished < 0.1


@pytest.mark.parametrize("args", [[], ["--doc-dim", 3]], ids=str)
def test_text_names_need_not_be_utf8(rnnlm, folder, args):
    name = os.fsdecode(b"t\xff")
    (folder / name).write_text(TRAIN)
    for _ in range(2):
        result = rnnlm(*args, "-train", name, "-rnnlm", "m", "-one-iter")
        assert result.exit_code == 0 and result.stdout_bytes.startswith(b"Starting training using file t\xff\n")
        assert load_rnnlm("m").progress["train"] == name


def test_the_model_is_also_written_during_an_epoch(original, folder, monkeypatch):
    seen, put = [], rnnlmrun.ModelFile.put
    monkeypatch.setattr(
        rnnlmrun.ModelFile, "put", lambda self, model: seen.append(dict(model.progress)) or put(self, model)
    )
    (folder / "train").write_text(TRAIN * 30)  # 31,500 words, in steps of at most 8192
    original("-max-iter", 2, "-anti-kasparek", 5, path="m")
    # Four steps per epoch; the file is written after each that passes a multiple of 10,000, the minimum.
    within = [15750, 23625, 31500]
    assert [(p["iter"], p["position"]) for p in seen] == [(0, n) for n in within] + [(1, 0)] + [(1, n) for n in within]


def test_a_run_stopped_during_an_epoch_resumes_near_its_position(original, folder, monkeypatch):
    (folder / "train").write_text(TRAIN * 30)
    original("-max-iter", 1)
    model = load_rnnlm("m")
    model.progress.update(position=20_000)
    with open("m", "wb") as file:
        rnnlmrun.write(file, model)
    words, positions, put = [], [], rnnlmrun.ModelFile.put
    monkeypatch.setattr(LmReport, "update", lambda self, done, *figures: words.append(done))
    monkeypatch.setattr(
        rnnlmrun.ModelFile, "put", lambda self, model: positions.append(model.progress["position"]) or put(self, model)
    )
    original("-max-iter", 2, "-anti-kasparek", 10_000)
    assert 31_500 - 20_000 - 8192 < words[-1] < 31_500 - 20_000 + 8192
    assert positions == [23_625, 31_500]


def test_testing_with_and_without_training(original, rnnlm, folder):
    trained = original("-max-iter", 2, "-test", "valid")
    test = trained.stdout[trained.stdout.index("\n\ntest log probability: ") + 1 :]
    assert re.search(r"^PPL net: \d+\.\d{6}$", test, re.M) and "test ppl" not in trained.stderr
    alone = rnnlm("-rnnlm", "m", "-test", "valid", "-write", "out")
    assert alone.stdout == test and alone.stderr.count(" has no effect without TEXT\n") == 2
    (folder / "lm").write_text("0.5\n" * 140)
    mixed = rnnlm("-rnnlm", "m", "-test", "valid", "-lm-prob", "lm", "-lambda", 0.25).stdout
    assert "0.250000*rnn + 0.750000*other_lm" in mixed and "PPL combine: " in mixed
    assert rnnlm("-rnnlm", "m", "-test", "valid", "-dynamic", 0.1).stdout not in (test, "")
    assert rnnlm("-rnnlm", "m", "-nbest", "-test", "-", input=b"1 the cat\n1 the log\n").stdout.count("\n") > 2
    wild = rnnlm("-rnnlm", "m", "-test", "valid", "-dynamic", 1e20)
    assert wild.exit_code == 1 and wild.stdout == ""
    assert "valid: dynamic evaluation diverged; lower --dynamic" in wild.stderr
    strange = rnnlm("-rnnlm", "m", "-nbest", "-test", "-", "--errors", "replace", input=b"1 the c\xfft\n")
    assert strange.exit_code == 0 and strange.stdout.count("\n") == 5
    drawn = rnnlm("-rnnlm", "m", "-gen", 9, "-rand-seed", 3).stdout
    assert len(re.findall(r" |\n", drawn)) == 9 and drawn == rnnlm("-rnnlm", "m", "-gen", 9, "--seed", 3).stdout
    assert rnnlm("-rnnlm", "m", "-gen", 9, "--seed", 3, "-test", "valid", "-dynamic", 1).stdout.endswith("\n" + drawn)


@pytest.mark.parametrize("unk, which", [("", ", which has no <unk>,"), ("<unk>\n", "")])
def test_unknown_words_of_the_validation_text_are_not_scored(original, rnnlm, folder, unk, which):
    (folder / "train").write_text(TRAIN + unk)
    (folder / "valid").write_text(VALID.replace("cat", "yak"))
    n = VALID.count("cat")
    result = original("-max-iter", 1)
    assert f"valid: {n} words outside the vocabulary{which} are not predicted" in result.stderr
    logp, ppl = re.findall(r": (-?\d+\.\d+)\n", (folder / "m.output.txt").read_text())
    assert float(logp) == pytest.approx(-(140 - n) * np.log10(float(ppl)), abs=1e-3)
    test = rnnlm("-rnnlm", "m", "-test", "valid").stdout
    assert float(re.search(r"PPL net: (\S+)", test)[1]) == pytest.approx(float(ppl), rel=1e-5)


# Options


def test_what_cannot_be_continued(rnnlm, run, folder):
    assert run("lstm", "train", "--emb", 3, "--epochs", 1, "--save-model", "l", "-output", "v").exit_code == 0
    for args in (["-train", "train"], ["-test", "valid"]):
        result = rnnlm("-rnnlm", "l", *args)
        assert result.exit_code == 1 and "l: is a model of kind lstm, not rnnlm" in result.stderr
    args = ["train", "-max-iter", 1, "--checkpoint", "c", "--resume"]
    assert rnnlm(*args).exit_code == 0
    result = rnnlm(*args, "--threads", 2)
    assert result.exit_code == 1 and "c: was created with --threads 1; this run has 2" in result.stderr


@pytest.mark.parametrize("args", [["-bptt", 2], ["--doc-dim", 3, "-direct", 0.001]], ids=str)
def test_a_resumed_run_gives_the_same_bytes(original, rnnlm, folder, monkeypatch, args):
    (folder / "train").write_text(TRAIN * 20)  # three steps per epoch
    expected = original(*args, "-max-iter", 4, path="whole")
    left, update = 5, LmReport.update

    def stopping(self, *figures):
        nonlocal left
        left -= 1
        if left == 0:
            interrupts.handle(signal.SIGINT, None)
        update(self, *figures)

    monkeypatch.setattr(LmReport, "update", stopping)
    args = ["-train", "train", "-valid", "valid", "-rnnlm", "m", "-class", 3, *args, "-max-iter", 4]
    args += ["--checkpoint", "c", "--resume"]
    stopped = rnnlm(*args)
    assert stopped.exit_code == 130 and load_rnnlm("m").progress["iter"] == 1
    interrupts.received.clear()
    result = rnnlm(*args)
    assert result.exit_code == 0 and "resumed: epoch 2, 2 of 3 steps done" in result.stderr
    assert load_rnnlm("m").params.values.tobytes() == load_rnnlm("whole").params.values.tobytes()
    assert '"origin"' not in (folder / "m.run.json").read_text()  # the run began without a model
    entropies = lambda result: [LINE.fullmatch(line)[3] for line in result.stdout.splitlines() if "VALID" in line]
    assert entropies(stopped) + entropies(result) == entropies(expected)


@pytest.mark.parametrize("earlier", [0, 2])
def test_one_iteration_is_not_repeated_when_resumed(rnnlm, earlier):
    args = ["-train", "train", "-rnnlm", "m", "-one-iter"]
    for _ in range(earlier):
        assert rnnlm(*args).exit_code == 0
    args += ["--checkpoint", "c", "--resume"]
    assert [(rnnlm(*args).exit_code, load_rnnlm("m").progress["iter"]) for _ in range(3)] == [(0, earlier + 1)] * 3


@pytest.mark.parametrize("lost", [False, True])
def test_a_resumed_run_updates_the_model_file(original, folder, lost):
    args = ["--checkpoint", "c", "--resume"]
    original(*args, "-max-iter", 1)
    early = (folder / "m").read_bytes()
    original(*args, "-max-iter", 3)
    expected = (folder / "m").read_bytes()
    (folder / "m").unlink() if lost else (folder / "m").write_bytes(early)  # as if killed before it was rewritten
    original(*args, "-max-iter", 3)
    assert (folder / "m").read_bytes() == expected


def test_a_full_disk_is_reported_and_does_not_end_the_run(original, monkeypatch):
    def full(*args):
        raise rnnlmrun.TiedtoolsError("m: cannot be written: No space left on device")

    monkeypatch.setattr("tiedtools.runs.files.open_output", full)
    result = original("-max-iter", 3)
    assert result.stderr.count("model file not written: m: cannot be written: No space left") == 2
    assert load_rnnlm("m").progress["iter"] == 3
