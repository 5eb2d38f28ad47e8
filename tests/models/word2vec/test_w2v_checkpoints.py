"""Test word2vec checkpoints: a run stopped between any two pieces of text resumes bitwise identically."""

import io
import itertools
import json
import os
import signal

import numpy as np
import pytest
from common import refused, rewrite
from w2vcase import VARIANTS, encoded, topic_text

from tiedtools.base import interrupts
from tiedtools.base.errors import Diverged, TiedtoolsError
from tiedtools.files import modelfile
from tiedtools.models.word2vec import run as word2vecrun
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import Run
from tiedtools.runs.progress import EpochLog, Progress
from tiedtools.text.vocab import Vocab

pytestmark = pytest.mark.usefixtures("no_signals")
VOCAB, TEXT = topic_text(600)
VALID = topic_text(30)[1]
EPOCHS = 2
ALONE = {name: dict(options, threads=1) for name, options in VARIANTS.items()}
DETERMINISTIC = {
    f"{name}-{threads}-deterministic": dict(options, threads=threads, deterministic=True)
    for (name, options), threads in zip(VARIANTS.items(), itertools.cycle([2, 3]))
    if not {"hs", "exact"} & set(options)
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(word2vecrun, "CHUNK", 1000)  # seven pieces per epoch


class Stopping(Run):
    """Receives a signal during job `at`."""

    at = -1

    def work(self, thread, job):
        if job == self.at:
            interrupts.received.append(signal.SIGTERM)  # as the main thread does
            self.pausing = True
        super().work(thread, job)


def begun(checkpoint=None, minutes=0.0, resume=False, vocab=VOCAB, text=TEXT, valid=VALID, **options):
    config = Config(size=10, **dict(epochs=EPOCHS, sample=0.01) | options)
    return Stopping(Word2Vec(vocab, config), text, checkpoint, minutes, resume, valid)


def done(run, log=None):
    run.go(EpochLog(log, Progress()))
    return b"".join(array.tobytes() for array in run.model.arrays.values())


def losses(history):
    return [tuple(figures.get(name, 0) for name in ("epoch", "loss", "lr", "valid_loss")) for figures in history]


@pytest.mark.parametrize("options", (ALONE | DETERMINISTIC).values(), ids=ALONE | DETERMINISTIC)
def test_resumed_run_is_bitwise_identical(tmp_path, options):
    path, log = str(tmp_path / "c"), io.StringIO()
    whole = begun(**options)
    expected = done(whole)
    for at in (0, 3, 7, 12):
        run = begun(path, **options)
        run.at = at
        with pytest.raises(KeyboardInterrupt) as stop:
            done(run)
        assert stop.value.args == (signal.SIGTERM,)
        interrupts.received.clear()
        again = begun(path, resume=True, **options)
        before = again.elapsed
        team = options["threads"]
        assert again.next == run.next == (at // team + 1) * team
        assert done(again, log) == expected
        np.testing.assert_allclose(losses(again.history), losses(whole.history), rtol=1e-12)
        seconds = [figures["seconds"] for figures in again.history]
        assert seconds == sorted(seconds) and again.seconds >= before > 0
        os.unlink(path)
    assert [json.loads(line)["epoch"] for line in log.getvalue().splitlines()] == [1, 2] * 4


@pytest.mark.parametrize("threads", [1, 2])
def test_a_diverged_run_restores_the_last_checkpoint(tmp_path, watchful, threads):
    class Diverging(Stopping):
        """Diverges after the checkpoint of the first epoch."""

        rounds = 0

        def pieces(self):
            self.rounds += 1
            return super().pieces()

        def work(self, thread, job):
            super().work(thread, job)
            if job >= 9 and (self.rounds > 1 or not self.checkpoint):
                self.model.emb_in[3] = 2e4
                self.stop[0] = word2vecrun.w2v.NAN
                raise self.diverged("forced by the test")

    path = str(tmp_path / "c")
    config = Config(size=10, epochs=100, sample=0.01, threads=threads)
    run = Diverging(Word2Vec(VOCAB, config), TEXT, path)
    with pytest.raises(Diverged) as stop:
        done(run)
    arrays = modelfile.load(path)[2]
    assert run.worthwhile(stop.value) and run.next >= 7 and run.done >= TEXT.size
    np.testing.assert_array_equal(run.model.emb_in, arrays["emb_in"])
    np.testing.assert_array_equal(run.model.emb_out, arrays["emb_out"])
    alone, deleted = Diverging(Word2Vec(VOCAB, config), TEXT), Diverging(Word2Vec(VOCAB, config), TEXT, path)
    deleted.load = lambda checkpoint: os.unlink(path) or checkpoint.read(deleted.check)  # by another process
    for run in alone, deleted:
        with pytest.raises(Diverged) as stop:
            done(run)
        assert not run.worthwhile(stop.value)


def test_resuming_a_finished_run_does_no_work(tmp_path, monkeypatch):
    path = str(tmp_path / "c")
    expected = done(begun(path))
    monkeypatch.setattr(Stopping, "work", None)
    assert done(begun(path, resume=True)) == expected


@pytest.mark.parametrize("tying, of_l", [("signs", set()), ("linear", {"proj"})])
def test_checkpoints_contain_only_data(tmp_path, tying, of_l):
    path = str(tmp_path / "c")
    done(begun(path, tying=tying))
    header, words, arrays = modelfile.load(path)
    assert header["kind"] == "checkpoint" and words == VOCAB.words and json.dumps(header["config"])
    assert set(arrays) == {"emb_in", "totals", "counts"} | of_l and os.listdir(tmp_path) == ["c"]


@pytest.fixture
def watchful(monkeypatch):
    """Run the periodic tick after every job."""
    work = Run.work
    monkeypatch.setattr(Run, "work", lambda self, *args: (work(self, *args), self.tick()))


@pytest.mark.parametrize("minutes, positions", [(0, [0, 7, 14]), (1e-12, list(range(15)))])
def test_when_checkpoints_are_written(tmp_path, monkeypatch, watchful, minutes, positions):
    written = []
    monkeypatch.setattr(Run, "contents", lambda self: written.append(self.next) or ({}, {}))
    done(begun(str(tmp_path / "c"), minutes))
    assert written == positions


def test_training_pauses_only_for_checkpoints(monkeypatch, watchful, tmp_path):
    calls, start = [], word2vecrun.hogwild.run
    monkeypatch.setattr(word2vecrun.hogwild, "run", lambda *args: calls.append(args) or start(*args))
    done(begun(valid=None))
    assert len(calls) == 1
    path = str(tmp_path / "c")
    run = begun(path)
    run.at = 5
    with pytest.raises(KeyboardInterrupt):
        done(run)
    interrupts.received.clear()
    again = begun(path, resume=True, threads=3)
    done(again)
    assert again.done == again.total == EPOCHS * TEXT.size


def test_a_lost_folder_is_reported_and_training_continues(tmp_path, monkeypatch, messages):
    folder = tmp_path / "folder"
    folder.mkdir()
    expected, run, work = done(begun()), begun(str(folder / "c")), Stopping.work

    def lost(self, thread, job):
        if job == 2:
            folder.rename(tmp_path / "elsewhere")
        work(self, thread, job)

    monkeypatch.setattr(Stopping, "work", lost)
    assert done(run) == expected
    assert "checkpoint not written: " in messages()
    with pytest.raises(TiedtoolsError, match="cannot be written"):
        done(begun(str(folder / "c")))  # before any work


@pytest.mark.parametrize("options", [*ALONE.values(), *DETERMINISTIC.values()], ids=str)
def test_compilation_changes_nothing(options):
    run = begun(**options)
    before = [array.copy() for array in run.model.padded]
    run.compile()
    for array, expected in zip(run.model.padded, before):
        np.testing.assert_array_equal(array, expected)


def test_the_checkpoint_of_a_run_started_at_the_same_time_is_kept(tmp_path):
    other = begun(str(path := tmp_path / "c"), lr=0.1)
    done(begun(str(path)))
    kept = path.read_bytes()
    refused(lambda: done(other), "c: belongs to another run", "was created with `lr=0.05`; this run has 0.1")
    assert path.read_bytes() == kept


def test_incompatible_checkpoints_are_rejected(tmp_path):
    done(begun(path := str(tmp_path / "c")))

    def differs(match, **options):
        refused(lambda: begun(path, resume=True, **options), f"c: was created with {match}")

    differs("`lr=0.05`; this run has 0.1", lr=0.1)
    differs("`tying=untied`; this run has tied", tying="tied")
    differs("`epochs=2`; this run has 3", epochs=3)  # the learning rate would have differed
    refused(lambda: begun(path, resume=True, min_alpha=0.001), "created without `min_alpha`; this run has 0.001")
    differs("a different text", text=encoded(TEXT.ids[::-1].copy(), TEXT.vocab))
    differs("a different vocabulary", vocab=Vocab(VOCAB.words[::-1], VOCAB.counts))
    differs("a different vocabulary", vocab=Vocab(VOCAB.words, VOCAB.counts + 1))
    differs("`deterministic=False`; this run has `deterministic=True`", deterministic=True)
    os.unlink(path)
    done(begun(path, deterministic=True, threads=2))
    differs("`threads=2`; this run has 3", deterministic=True, threads=3)
    rewrite(path, lambda header, words, arrays: header["config"]["identity"]["options"].update(kind="lstm"))
    differs("another command or kind of run: lstm, not word2vec; resume with that command")


OTHERS = dict(fit_pmi=True, ns_exponent=0.5, min_alpha=0.0, cbow_sum=True, fixed_window=True)


@pytest.mark.parametrize("name", OTHERS)
def test_a_checkpoint_is_resumed_with_the_same_settings(tmp_path, name):
    path, option = str(tmp_path / "c"), {name: OTHERS[name]}
    same = dict(lr=0.01, cbow_grad="exact", shift=0.0, epochs=1)
    whole = done(begun(path, **same, **option))
    assert done(begun(path, resume=True, **same, **option)) == whole
    now = f"`{name}=False`" if OTHERS[name] is True else getattr(begun(**same).model.config, name) or "none"
    refused(lambda: begun(path, resume=True, **same), f"created with `{name}={OTHERS[name]}`; this run has {now}")


@pytest.mark.parametrize("name", sorted(OTHERS.keys() - {"fit_pmi"}))
def test_a_checkpoint_without_a_setting_has_its_default(tmp_path, name):
    path, option = str(tmp_path / "c"), {name: OTHERS[name]}
    same = dict(lr=0.01, cbow_grad="exact", shift=0.0, epochs=1)
    done(begun(path, **same))
    rewrite(path, lambda header, words, arrays: header["config"]["identity"]["options"].pop(name))
    begun(path, resume=True, **same)
    refused(lambda: begun(path, resume=True, **same, **option), "c: was created with", f"`{name}")


@pytest.mark.parametrize("damage", [
    lambda progress, arrays: progress.update(next=-1), lambda progress, arrays: progress.update(next=10**6),
    lambda progress, arrays: progress.update(elapsed="1"), lambda progress, arrays: progress.update(cuts=[]),
    lambda progress, arrays: progress["history"].__setitem__(0, 1),
    lambda progress, arrays: progress["history"].__setitem__(-1, {}),
    lambda progress, arrays: progress["history"][0].update(seconds="1"),
    lambda progress, arrays: progress.update(history=progress["history"] * 2),
    lambda progress, arrays: arrays.pop("totals"), lambda progress, arrays: arrays["totals"].__setitem__((0, 2), 10**9),
    lambda progress, arrays: arrays["emb_in"].__setitem__((0, 0), np.nan),
    lambda progress, arrays: arrays.update(emb_in=arrays["emb_in"][:1]),
])  # fmt: skip
def test_corrupt_checkpoints_are_rejected(tmp_path, damage):
    path = str(tmp_path / "c")
    done(begun(path))
    rewrite(path, lambda header, words, arrays: damage(header["config"]["progress"], arrays))
    refused(lambda: begun(path, resume=True), f"{path}: ", "corrupt")


# The command
