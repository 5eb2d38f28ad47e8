"""Test `mpiexec -n N tiedtools ...`: the result, its files, resuming, and one line for each way of failing."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import numpy as np
import pytest
from rankscase import finished, needs_mpi, start

from tiedtools.files import modelfile
from tiedtools.parallel import ranks
from tiedtools.vectors.vectors import Vectors

pytestmark = needs_mpi
OPTIONS = "-size", 16, "-min-count", 1, "-threads", 1, "-sample", 0, "-seed", 3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Two files with 60,000 words of six topics."""
    folder, rng = tmp_path_factory.mktemp("corpus"), np.random.default_rng(0)
    for name, lines in ("a.txt", 2500), ("b.txt", 3500):
        topics, words = rng.integers(0, 6, lines), rng.integers(0, 8, (lines, 10))
        text = "".join(" ".join(f"t{t}w{w}" for w in row) + "\n" for t, row in zip(topics, words))
        (folder / name).write_text(text)
    return folder / "a.txt", folder / "b.txt"


def alone(*args):
    result = subprocess.run([sys.executable, "-m", "tiedtools", *map(str, args)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("n", [2, 3])
def test_the_vocabulary_is_that_of_one_process(n, corpus):
    status, out, errors = finished(start(n, "vocab", *corpus))
    assert (status, errors) == (0, []) and out == alone("vocab", *corpus)


@pytest.mark.parametrize("n, exchanges, options", [
    (2, 4, ()), (3, 3, ("-cbow", 0, "--tie-signs", "--exchange-precision", "bfloat16")),
    (2, 9, ("-cbow", 0, "--subwords", "ngrams")),
])  # fmt: skip
def test_ranks_train_one_model_which_rank_0_writes(n, exchanges, options, corpus, tmp_path):
    log = tmp_path / "log.json"
    more = "-iter", 3, "--exchange-words", 7000, "--log-json", log, "-save-vocab", tmp_path / "words"
    more += "--manifest", tmp_path / "manifest"
    process = start(n, "w2v", *OPTIONS, *options, *more, "--valid", corpus[0], "-output", "-", *corpus)
    status, out, errors = finished(process)
    assert (status, errors) == (0, [])
    (tmp_path / "vectors").write_text(out)
    vectors = Vectors.read(str(tmp_path / "vectors"))
    assert (tmp_path / "words").read_text() == alone("vocab", *corpus)
    same = [vectors.most_similar(f"t{t}w0", topn=1)[0][0][:2] == f"t{t}" for t in range(6)]
    assert all(same)
    manifest = json.loads((tmp_path / "manifest").read_text())
    *texts, _ = manifest["inputs"]
    assert manifest["ranks"] == n and sum(text["bytes"] for text in texts) == sum(p.stat().st_size for p in corpus)
    rerun = [sys.executable, "-m", "tiedtools", "rerun", str(tmp_path / "manifest")]
    assert f"recorded on {n} ranks" in subprocess.run(rerun, capture_output=True, text=True).stderr
    *epochs, last = map(json.loads, log.read_text().splitlines())
    assert epochs[2]["loss"] < epochs[0]["loss"] and epochs[2]["valid_loss"] < epochs[0]["valid_loss"]
    assert last["exchanges"] == 3 * exchanges and last["exchanged_mb"] > 0 and 0 <= last["waiting_share"] < 1


def test_the_loss_is_near_that_of_one_process(corpus, tmp_path):
    losses = []
    for n in 1, 2:
        log = tmp_path / f"{n}.json"
        args = "w2v", *OPTIONS, "-iter", 4, "--log-json", log, "-output", tmp_path / "v", "--exchange-words", 3000
        assert finished(start(n, *args, *corpus))[0] == 0
        losses.append([json.loads(line)["loss"] for line in log.read_text().splitlines()[:-1]])
    assert losses[1][-1] == pytest.approx(losses[0][-1], rel=0.05)


@pytest.mark.parametrize("again", [1, 2, 3])
def test_a_stopped_run_resumes_with_another_number_of_ranks(again, corpus, tmp_path):
    checkpoint, output = tmp_path / "checkpoint", tmp_path / "vectors"
    args = "w2v", *OPTIONS, "-iter", 40, "--exchange-words", 2000, "--checkpoint", checkpoint, "-output", output
    process = start(2, *args, *corpus)
    wait_for(lambda: checkpoint.exists() and history(checkpoint))
    os.killpg(process.pid, signal.SIGINT)
    status, _, errors = finished(process)
    assert status == 130 and errors[-1].startswith("tiedtools: interrupted after "), errors
    begun = len(history(checkpoint))
    assert 0 < begun < 40 and output.exists()
    status, _, errors = finished(start(again, *args, "--resume", *corpus))
    assert (status, errors) == (0, [])
    assert len(history(checkpoint)) == 40


def history(checkpoint):
    try:
        return modelfile.load(str(checkpoint), modelfile.CHECKPOINT)[0]["config"]["progress"]["history"]
    except OSError:
        return []


def wait_for(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("nothing happened")


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_killed_rank_ends_all_with_one_line_that_names_it(victim, corpus, tmp_path):
    def prefix(k):
        return ["sh", "-c", f'echo $$ > {tmp_path}/pid{k}; exec "$@"', "sh"]

    log = tmp_path / "log"
    # With more epochs, ranks exchange so many figures that MPICH reads them from another's memory. If that is gone, it
    # kills all ranks, perhaps before the connection of the one killed first is closed.
    args = "w2v", *OPTIONS, "-iter", 200, "--log-json", log, "-output", tmp_path / "vectors", *corpus
    process = start(3, *args, each=prefix)
    wait_for(lambda: log.exists() and log.stat().st_size)
    os.kill(int((tmp_path / f"pid{victim}").read_text()), signal.SIGKILL)
    status, _, errors = finished(process)
    assert status != 0
    problem = "was killed, or lost its connection; the run ended without its output"
    assert errors == [f"tiedtools: rank {victim} of 3 {problem}"]
    assert not (tmp_path / "vectors").exists()


def test_a_text_missing_or_a_disk_full_on_one_machine(corpus, tmp_path):
    for k, there in enumerate((True, False)):
        (tmp_path / f"{k}").mkdir()
        if there:
            (tmp_path / f"{k}" / "text").write_text(corpus[0].read_text())
    process = start(2, "w2v", *OPTIONS, "-output", "vectors", "text", each=lambda k: ["-wdir", str(tmp_path / str(k))])
    status, _, errors = finished(process)
    assert status != 0 and errors == [
        "tiedtools: rank 1 of 2: text: cannot be read: No such file or directory; check the name"
    ]
    assert not (tmp_path / "0" / "vectors").exists()
    full = "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)) or make(*args, **options)"
    patch = f"make = tempfile.TemporaryFile\n    tempfile.TemporaryFile = lambda *args, **options: {full}"
    process = start(2, "w2v", *OPTIONS, "-output", tmp_path / "vectors", *corpus, env=on_rank_1(tmp_path, patch))
    status, _, errors = finished(process)
    assert status != 0 and len(errors) == 1
    assert re.match("tiedtools: rank 1 of 2: .*token IDs need 4 bytes of disk space per word", errors[0])
    assert not (tmp_path / "vectors").exists()


def on_rank_1(folder, code):
    """Return an environment in which rank 1 executes `code` at its start."""
    (folder / "sitecustomize.py").write_text(
        f"import os, resource, tempfile\nimport tiedtools\nif os.environ['PMI_RANK'] == '1':\n    {code}\n"
    )
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.mark.parametrize("args, found", [
    (("w2v", "-size", 0), "rank [01] of 2: w2v: .*-size.*"),
    (("w2v", "--deterministic"), "rank [01] of 2: w2v: --deterministic needs a single process.*"),
    (("w2v",), "rank [01] of 2: standard input: cannot be divided among ranks; give files"),
])  # fmt: skip
def test_errors_of_all_ranks_are_reported_once(args, found):
    status, out, errors = finished(start(2, *args))
    assert status != 0 and not out and len(errors) == 1 and re.fullmatch(f"tiedtools: {found}", errors[0]), errors


def test_ranks_with_different_options_or_versions(corpus, tmp_path):
    def prefix(k):
        return ["sh", "-c", f'exec "$@" -size 1{k}', "sh"]

    status, _, errors = finished(start(2, "w2v", "-output", tmp_path / "v", corpus[0], each=prefix))
    assert status == 1 and errors == [
        "tiedtools: rank 1 was started with 11, rank 0 with 10; start all ranks with the same command"
    ]
    newer = on_rank_1(tmp_path, "import tiedtools.base.version; tiedtools.base.version.__version__ = '9.9'")
    status, _, errors = finished(start(2, "vocab", corpus[0], env=newer))
    assert status == 1 and len(errors) == 1 and errors[0].startswith("tiedtools: rank 1 runs tiedtools 9.9, rank 0 ")


def test_divergence_of_one_rank_stops_all_with_the_last_checkpoint(corpus, tmp_path):
    args = "w2v", *OPTIONS, "-alpha", 900, "-output", tmp_path / "vectors", "--checkpoint", tmp_path / "c", *corpus
    status, _, errors = finished(start(2, *args))
    assert status == 1 and len(errors) == 1 and "training diverged" in errors[0], errors


def test_help_is_printed_once():
    status, out, _ = finished(start(3, "w2v", "--help"))
    assert status == 0 and out.count("Usage:") == 1


def test_a_launcher_of_another_mpi(corpus, monkeypatch):
    """Each process is alone in its MPI, as if started by the launcher of another library."""
    env = {**os.environ, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}
    command = [sys.executable, "-m", "tiedtools", "vocab", str(corpus[0])]
    result = subprocess.run(command, env=env, capture_output=True, text=True)
    assert result.returncode == 1 and not result.stdout
    assert re.fullmatch(
        "tiedtools: the launcher started 2 processes, but each is alone in .*pmi2 or pmix\n", result.stderr
    )
    other = subprocess.run(command, env={**env, "SLURM_PROCID": "1"}, capture_output=True, text=True)
    assert other.returncode == -signal.SIGKILL and other.stderr.startswith(
        "tiedtools: rank 1 of 2: the launcher started"
    )
    assert ranks.Ranks.threads(Mock(**{"near.allgather": lambda mask: [mask, [], mask]}), 7) == 3  # two share cores
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")  # of an interactive shell
    assert ranks.launched() is None


def test_more_exchanges_than_pieces_and_a_pause_after_the_last_piece(corpus, tmp_path):
    """All pieces of an epoch may have begun when a run is stopped; the resumed one finishes it."""
    checkpoint = tmp_path / "checkpoint"
    args = "w2v", *OPTIONS, "-iter", 60, "--exchange-words", 10, "--checkpoint", checkpoint, "-output", tmp_path / "v"
    process = start(2, *args, *corpus)
    wait_for(lambda: checkpoint.exists() and history(checkpoint))
    os.killpg(process.pid, signal.SIGINT)
    assert finished(process)[0] == 130
    header, words, arrays = modelfile.load(str(checkpoint), modelfile.CHECKPOINT)
    header["config"]["progress"]["positions"] = [1.0, 1.0]
    with open(checkpoint, "wb") as file:
        modelfile.save(file, modelfile.CHECKPOINT, header["config"], words, arrays)
    assert finished(start(2, *args, "--resume", *corpus))[::2] == (0, [])


def test_a_checkpoint_of_ranks_is_not_resumed_without_mpi(corpus, tmp_path):
    args = "w2v", *OPTIONS, "-iter", 1, "--checkpoint", tmp_path / "c", "-output", tmp_path / "v", *corpus
    assert finished(start(2, *args))[0] == 0
    command = [sys.executable, "-m", "tiedtools", *map(str, args), "--resume"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1 and "was created with MPI; resume with an MPI launcher" in result.stderr
