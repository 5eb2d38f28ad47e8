"""Fixtures shared by all tests."""

import inspect
import os
import signal
from pathlib import Path

import pytest

from tiedtools.base.processor import choose_processor

choose_processor()  # before NumPy is imported
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in a script's background job, tests would inherit it


# The tests of `--fast`: these folders and files, without tests that train, compile, start processes, or import PyTorch.
FAST = "base evaluation files kernels network text training vectors test_pages.py test_structure.py".split()
SLOW = """
hyperwords_matrices starspace test_a_given_vocabulary test_a_share_without test_convert.py::test_a_full_disk
test_cells.py test_fit_ test_interrupts test_jit.py test_kernel_w2v.py::test_update test_kernel_w2vtiles.py::test_mean
test_kernel_w2vtiles.py::test_update test_memory test_morphs test_neuralcache test_pictures test_processor test_style
test_subwords the_site_builds code_for_older_cpus cpus_without_a_bfloat16 gensim held_in_memory longer_than_a_block
longest_word memory_of_rare_words midpoints output_does_not_depend_on_hash peak_memory real_package shares_are_the_text
single_process terminal
""".split()


def pytest_addoption(parser):
    parser.addoption("--fast", action="store_true", help="run only tests that take a minute together")


def pytest_ignore_collect(collection_path, config):
    if config.getoption("fast") and collection_path.parent == Path(__file__).parent:
        return True if collection_path.name not in FAST else None


def pytest_collection_modifyitems(config, items):
    if config.getoption("fast"):
        items[:] = [item for item in items if not any(part in item.nodeid for part in SLOW)]


@pytest.fixture
def corpus(request, tmp_path):
    """Path of a file with the LINES of the test's module."""
    (path := tmp_path / "corpus.txt").write_text(request.module.LINES)
    return path


@pytest.fixture
def text(request, tmp_path):
    """Path, a str, of a file with the TEXT of the test's module."""
    (path := tmp_path / "text").write_bytes(request.module.TEXT.encode())
    return str(path)


@pytest.fixture
def run():
    """Run a `tiedtools` command line in this process: `run("w2v", "-size", 10, input=b"...")`.

    Returns click's Result: `exit_code`, `stdout_bytes`, `stderr`. A traceback fails the test. `run.fails(2, "--size",
    "w2v", ...)` checks the exit status, that nothing is printed, and that only the last line of standard error is an
    error, which names "--size".
    """
    from click.testing import CliRunner

    from tiedtools.cli import cli

    # Before click 8.2, CliRunner mixes standard error into standard output by default.
    streams = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}

    def run(*args, input=None, command=cli, name="tiedtools"):
        result = CliRunner(**streams).invoke(command, [str(a) for a in args], input=input, prog_name=name)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def fails(status, named, *args, **options):
        result = run(*args, **options)
        *before, error = result.stderr.splitlines() or [""]
        assert (result.exit_code, result.stdout_bytes) == (status, b""), result.stderr
        assert error.startswith("tiedtools") and named in error and not any(x.startswith("tiedtools") for x in before)
        return result

    run.fails = fails
    return run


@pytest.fixture
def quiet():
    """A Progress that discards all reports."""
    from tiedtools.runs.progress import Progress

    return Progress()


@pytest.fixture
def libraries():
    """The optional libraries that segment words; skips the test if one is absent."""
    for name in "morfessor", "pyphen":
        pytest.importorskip(name, reason=f'needs {name}: pip install "tiedtools[subwords]"')


@pytest.fixture
def memory():
    """A function that writes files to fsspec's memory:// and returns their URLs."""
    fsspec = pytest.importorskip("fsspec", reason='needs fsspec: pip install "tiedtools[remote]"')
    system = fsspec.filesystem("memory")

    def write(name, data):
        system.pipe(f"/{name}", data)
        return f"memory://{name}"

    yield write
    system.store.clear()


@pytest.fixture
def no_signals(monkeypatch):
    """Isolate the test from signals that other tests handled."""
    from tiedtools.base import interrupts

    monkeypatch.setattr(interrupts, "received", [])


@pytest.fixture(scope="session")
def measured_data():
    """The folder of public corpora and test sets, laid out as `tiedtools data` expects; skips the test if absent."""
    here = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("TIEDTOOLS_DATA", here))
    if not folder.is_dir():
        pytest.skip(f"no data: TIEDTOOLS_DATA is unset and {here} does not exist")
    return folder


@pytest.fixture
def messages():
    """A function that returns the library's messages since its last call, one per line."""
    from listening import listening

    with listening() as told:

        def read():
            found = "".join(f"{message}\n" for message in told)
            told.clear()
            return found

        yield read
