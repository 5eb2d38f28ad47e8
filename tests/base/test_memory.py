"""Test memory: the estimate against a run's peak, the memory available, and the check before a run."""

import json
import subprocess
import sys
import tracemalloc

import lmcase
import nmtcase
import numpy as np
import pytest
from common import refused
from w2vcase import TYINGS, topic_text

from tiedtools.base import memory
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import Run
from tiedtools.models.word2vec.tables import huffman_tree
from tiedtools.network.params import Buffers
from tiedtools.text.vocab import Vocab

# Start from a small process: Linux counts the memory held before exec() in the peak of the new program.
START = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode)"
CASES = {
    "w2v": "w2v -size 300 -iter 1 -min-count 1",
    "w2v, signs": "w2v -size 300 -iter 1 -min-count 1 --tie-signs",
    "w2v, tied+L": "w2v -size 300 -iter 1 -min-count 1 --tie-linear",
    "w2v, n-grams": "w2v -cbow 0 -size 300 -iter 1 -min-count 1 --subwords ngrams -threads 2 --sample 0",
    "w2v, n-grams, tied": "w2v -cbow 1 -size 300 -iter 1 -min-count 1 --subwords ngrams --tie -threads 2 --sample 0",
    "lstm": "lstm --emb 200 --epochs 1 --max-vocab 8000 --valid-share 0.01",
    "rnnlm": "rnnlm -hidden 100 -max-iter 1 -threads 2",
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A text of 25,000 distinct words."""
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text("".join(f"w{k}" + " \n"[k % 20 == 0] for k in range(25_000)))
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured on Linux")
@pytest.mark.parametrize("line", CASES.values(), ids=CASES)
def test_the_estimate_is_within_15_percent_of_the_peak(text, tmp_path, line):
    command = [sys.executable, "-m", "tiedtools", *line.split(), "-output", str(tmp_path / "v"), str(text)]
    result = subprocess.run([sys.executable, "-S", "-c", START, *command], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    sizes = json.loads((tmp_path / "v.run.json").read_text())["memory"]
    assert f"memory: about {sizes['estimated_mb']:,} MB" in result.stderr
    assert sizes["estimated_mb"] == pytest.approx(sizes["peak_mb"], rel=0.15)


@pytest.mark.parametrize("name", lmcase.CONFIGS)
def test_lstm_memory_is_the_size_of_its_arrays(name):
    """The estimate equals the size of all arrays kept after a step, for every variant."""
    options = dict(lmcase.CONFIGS[name], steps=lmcase.T, batch=lmcase.B)
    options = (dict(size=11) if "layer_widths" in options else dict(size=24, hidden=24)) | options
    config = LstmConfig(**options)
    model = LstmLM(lmcase.VOCAB, config)
    model.train_step(*lmcase.window(model), 0)
    layers = [*model.network.layers, model.network.output]
    masks = [getattr(layer, name, None) for layer in layers for name in ("masks", "masks_x")]
    layers += [drop for layer in layers if (drop := getattr(layer, "drop_weights", None))]
    layers += [drop for each in masks if each for drop in each.drops]
    buffers = [part for layer in layers for part in vars(layer).values() if isinstance(part, Buffers)]
    kept = sum(flat.nbytes for part in buffers for *_, flat in part.arrays.values())
    values = model.params.values.nbytes
    assert LstmLM.memory(lmcase.VOCAB, config) == kept + 3 * values


def test_lstm_memory_includes_the_optimizer_and_the_longest_window():
    memory = lambda **options: LstmLM.memory(lmcase.VOCAB, LstmConfig(size=24, **options))
    values = LstmLM(lmcase.VOCAB, LstmConfig(size=24)).params.values.nbytes
    for name, copies in {"sgd": 0, "asgd": 1, "nt-asgd": 1, "adadelta": 2, "adam": 2}.items():
        assert memory(optimizer=name) - memory() == copies * values
    assert memory(steps=95) == memory(steps=70, random_steps=True) > memory(steps=70)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_memory_of_a_translator_is_the_size_of_its_arrays(precision, dropout):
    options = dict(size=24, hidden=16, batch=5, max_length=9, optimizer="sgd", precision=precision, threads=2)
    rates = dict.fromkeys(("drop_emb", "drop_annotation", "drop_out"), dropout)
    m = nmtcase.model(dtype="float32", **options, **rates)
    m.train_step(*nmtcase.batch(m, [(10, 10)] * 5)[:2], (), 0)
    kept, todo = 0, [m.network]
    while todo:
        part = todo.pop()
        if isinstance(part, Buffers):
            kept += sum(flat.nbytes for *_, flat in part.arrays.values())
        elif isinstance(part, list):
            todo += part
        elif type(part).__module__.startswith(("tiedtools.network.layers", "tiedtools.models")):
            todo += vars(part).values()
    values = m.params.values.nbytes
    assert type(m).memory((m.source_vocab, m.target_vocab), m.config) == kept + 3 * values


WIDE = dict(size=1600, threads=3)


@pytest.mark.parametrize("options", [
    {}, dict(WIDE, tying="signs"), dict(WIDE, tying="linear", precision="bfloat16"),
    dict(WIDE, tying="linear", precision="float32"), dict(architecture="skipgram"),
], ids=str)  # fmt: skip
def test_word2vec_memory_includes_scratch_arrays(options):
    vocab, text = topic_text(100)
    config = Config(**{"size": 16, "shared_negatives": (64, 8, 16), "lr": 0.001, **options})
    scratch = 0
    for workspace in Run(Word2Vec(vocab, config), text).workspaces:
        _, _, steps, transposed, bf16 = workspace.linear or (None, None, None, None, ())
        steps = steps if config.threads > 1 else None
        arrays = *workspace.space[:-1], *(workspace.targets or ()), transposed, *bf16, steps
        # By address, since two of the rows share an array.
        scratch += sum({a.ctypes.data: a.nbytes for a in arrays if a is not None}.values())
    assert scratch < Word2Vec.memory(vocab, config) < 2 * scratch


def test_memory_of_word2vec(monkeypatch):
    vocab = Vocab(["</s>"] * 50_000, 10**7 // np.arange(1, 50_001))
    tree = sum(array.nbytes for array in huffman_tree(vocab.counts))
    with_tree, without = (Word2Vec.memory(vocab, Config(hs=hs, negative=1, exact=True)) for hs in (True, False))
    assert tree < with_tree - without - 50_000 * 112 * 4 < 1.5 * tree
    vocab = Vocab(["</s>"] * 50_000, np.arange(50_000, 0, -1))
    untied, tied, signs, linear = (Word2Vec.memory(vocab, Config(**options)) for options in TYINGS.values())
    matrix = 50_000 * 112 * 4
    assert matrix < tied < linear < 1.2 * matrix and 2 * matrix < untied < 2.1 * matrix
    assert matrix < signs < linear


def test_warm_up_does_not_allocate_the_scratch_arrays_of_a_run():
    tracemalloc.start()
    try:
        Word2Vec.warm_up(Config(shared_negatives=(512, 4096, 65536)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1e9  # the run would need a terabyte


# Available memory

LINUX = {
    "proc/meminfo": "MemTotal: 900 kB\nMemAvailable:   800 kB\n",
    "proc/self/status": "VmHWM:  90 kB\nVmRSS:\t60 kB\nVmSize: 100 kB\n",
    "proc/self/cgroup": "0::/a/b\n",
    "proc/self/mountinfo": "30 23 0:26 / /groups rw - cgroup2 cgroup2 rw\n",
}
STAT = "anon 1\ninactive_file {}\n"
SYSTEMS = {
    "free": ({}, 800),
    "a group": ({"a/b/memory.max": "512000", "a/b/memory.current": "204800", "a/b/memory.stat": "x 1\n"}, 300),
    "parent group": ({"a/memory.max": "409600", "a/memory.current": "0", "a/memory.stat": "x 1\n"}, 400),
    "reclaimable file cache": (
        {"memory.max": "409600", "memory.current": "409600", "memory.stat": "inactive_file 102400\n"}, 100,
    ),
    "no limit": ({"a/memory.max": "max", "a/memory.current": "5", "a/memory.stat": "x 1\n"}, 800),
    "over the limit": ({"memory.max": "1024", "memory.current": "2048", "memory.stat": "x 1\n"}, 0),
}  # fmt: skip


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.fixture
def system(tmp_path, monkeypatch):
    write(tmp_path, LINUX)
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    monkeypatch.setattr(memory.resource, "getrlimit", lambda which: (memory.resource.RLIM_INFINITY,) * 2)
    return tmp_path


@pytest.mark.parametrize("files, kb", SYSTEMS.values(), ids=SYSTEMS)
def test_available(system, files, kb):
    write(system / "groups", files)
    assert memory.available() == kb * 1024


def test_available_in_groups_of_version_1(system):
    mount = "33 32 0:30 / /groups/memory rw - cgroup cgroup rw,memory,other\n"
    write(system, {"proc/self/cgroup": "3:cpu:/x\n2:memory,other:/a\n", "proc/self/mountinfo": mount})
    limit = {
        "memory.limit_in_bytes": "20480", "memory.usage_in_bytes": "10240", "memory.stat": "total_inactive_file 1024\n",
    }  # fmt: skip
    write(system / "groups/memory", limit)
    write(system / "groups/memory/a", limit | {"memory.limit_in_bytes": "9223372036854771712"})
    assert memory.available() == 11 * 1024


def test_available_below_ulimit(system, monkeypatch):
    monkeypatch.setattr(memory.resource, "getrlimit", lambda which: (300 * 1024, 300 * 1024))
    assert memory.available() == 200 * 1024


def test_available_on_other_systems(system):
    for name in LINUX:
        (system / name).unlink()
    assert memory.available() > 10**8 and memory.peak() > 10**7


def test_expected_memory_is_checked(system, messages):
    assert memory.expected(10**9) == 60 * 1024 + 10**9 + memory.REST
    assert memory.expected(-memory.REST) == 90 * 1024  # the peak so far was higher
    assert memory.check(700 * 1024, "buy some") == memory.expected(700 * 1024)
    refused(lambda: memory.check(2 * 10**6, "buy some"), "memory: the run needs 2 MB more, 1 MB available: buy some;")
    memory.check(2 * 10**6, "buy some", force=True)
    told = messages().splitlines()
    assert told[0] == "memory: about 7 MB" and "continuing because of `no_memory_check`" in told[-1]


@pytest.mark.parametrize("args, advice", [
    (["w2v", "-size", 10**5], "lower --size"), (["lstm", "--emb", 10**5, "--tie"], "lower --size"),
    (["rnnlm", "-hidden", 10**5], "lower --hidden"),
], ids=lambda arg: arg[0])  # fmt: skip
def test_models_that_do_not_fit_are_rejected_before_allocation(run, text, tmp_path, monkeypatch, args, advice):
    monkeypatch.setattr(memory, "available", lambda: 10**9)
    result = run(*args, "-min-count", 1, "-debug", 0, "-output", tmp_path / "v", text)
    assert result.exit_code == 1 and result.stderr.count("\n") == 1 and result.stderr.startswith("tiedtools: memory: ")
    assert advice in result.stderr and not (tmp_path / "v").exists()
