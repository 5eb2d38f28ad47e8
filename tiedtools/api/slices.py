"""Word vectors of time slices of a text, comparable with each other by construction."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tiedtools.api.runs import Runs
from tiedtools.api.word2vec import Word2Vec
from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.settings import NONE, Reading
from tiedtools.files import digests, manifest, modelfile
from tiedtools.files.output import is_special, open_output, split_compression
from tiedtools.models.word2vec.config import Resampling, default_vectors
from tiedtools.runs.trainer import Trainer
from tiedtools.text.sources import blocks, counted, is_path, open_source
from tiedtools.vectors.edit import refuse_dimensions
from tiedtools.vectors.runs import SLICES

COMPASS = "compass.npz"
Train = Callable[[Trainer], Any]


def train_slices(
    settings: dict[str, Any], texts: Sequence[str], folder: str, train: Train = Trainer.train, **others: Any
) -> None:
    """Train a model of all texts, the compass, and vectors of each text that continue from it (Di Carlo et al. 2019).

    The output vectors of an untied model are frozen, so that all slices share their space. A tied model has one
    matrix; the vectors of each slice are then aligned to the compass (`align` in models.word2vec.trainer).

    settings  arguments of Word2Vec
    texts     paths; each is a slice, named by its file name without extensions
    folder    path of the folder for compass.npz, slices.txt, and NAME.runs of each slice; what an interrupted training
              left there is continued
    train     function that runs a Trainer
    others    arguments of Word2Vec.fit: runs, resample, document, write, no_memory_check

    Raises TiedtoolsError for fewer than two texts, texts of the same name, or an empty one.
    """
    names = [os.path.basename(split_compression(text)[0]).split(".")[0] for text in texts]
    if len(names) < 2 or len(set(names)) < len(names) or "-" in names or "\n" in "".join(names):
        what = "slices need two or more texts whose names, without line ends, differ before the first dot"
        raise TiedtoolsError(f"{what}, not {' '.join(texts)}")
    config = Word2Vec(**settings).configured[0]
    if config.hs:
        raise Contradiction("`hs` and `slices` exclude each other: Huffman trees cannot be continued")
    compass = os.path.join(folder, COMPASS)
    outputs = [os.path.join(folder, f"{name}.runs") for name in names]
    unchecked = {"no_memory_check": others.pop("no_memory_check", False)}
    run = {"runs": 1, **others} | ({"resample": "none"} if others.get("runs", 1) == 1 else {})
    asked = {"document": "record" if settings.get("field") else "line", "write": default_vectors(config)}
    asked |= {"resample": Resampling(2).resample} | {name: value for name, value in run.items() if value is not None}
    if asked["write"] == "out" and config.tying == "untied":
        raise Contradiction("`write=out`: untied slices share the output vectors of the compass; omit it")
    checkpoint = os.path.join(folder, "compass.checkpoint")
    killed = os.path.exists(checkpoint) and not os.path.exists(compass + manifest.SUFFIX)  # the checkpoint checks all
    if os.path.exists(compass) and not killed:
        refuse_others(compass, settings, texts)
        for output in filter(os.path.exists, outputs):
            old = Runs.load(output).training
            for name in ("write", "resample", "document") if old["runs"] > 1 else ("write",):
                if asked[name] != old.get(name, asked[name]):
                    raise TiedtoolsError(f"{output}: was trained with `{name}={old[name]}`; choose another folder")
    elif any(map(os.path.exists, outputs)):
        raise TiedtoolsError(f"{folder}: has slices but no {COMPASS}; choose another folder")
    for text in texts:
        if is_special(text):
            raise TiedtoolsError(f"{text}: is read several times; give a file")
        raw = Word2Vec(**settings).trainer(text).raw([text])
        if not any(block.strip() for _, block in blocks(raw, settings.get("errors") or "strict")):
            raise TiedtoolsError(f"{text}: no words; give texts")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise TiedtoolsError(f"{folder}: is not a folder; give the name of a folder for the slices")
    os.makedirs(folder, exist_ok=True)
    listed, listing = Path(folder, SLICES), "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
    if listed.exists() and (listed.is_dir() or listed.read_bytes() != listing):
        raise TiedtoolsError(f"{listed}: is not the list of these slices; remove it, or choose another folder")
    with open_output(str(listed)) as file:
        file.write(listing)
    if not os.path.exists(compass) or os.path.exists(checkpoint):
        log.info(f"compass: {len(texts)} texts together")
        files: dict[str, Any] = dict(save_model=compass, checkpoint=checkpoint, resume=True)
        train(Word2Vec(**settings).trainer(list(texts), **files, **unchecked))
        Path(checkpoint).unlink(missing_ok=True)
    settings, tied = settings | {"lr": config.lr}, config.tying != "untied"
    start: dict[str, Any] = dict(init_from=compass, freeze=None if tied else "out", align=tied)
    slices = [*zip(names, texts, outputs)]
    wants = lambda path: not os.path.exists(path) or os.path.exists(f"{path}.checkpoint")
    missing = [each for each in slices if wants(each[2]) or len(Runs.load(each[2])) < run["runs"]]
    if not missing:
        fewest = min(len(Runs.load(output)) for output in outputs)
        log.info(f"already complete ({len(slices)} slices of {counted(fewest, 'run')}); raise `runs` for more")
    for name, text, output in missing:
        log.info(f"slice {name}")
        checkpoint = f"{output}.checkpoint"  # has the finished runs
        files = dict(output=output, checkpoint=checkpoint, resume=True)
        train(Word2Vec(**settings).trainer(text, **files, **unchecked, **start, **run))
        Path(checkpoint).unlink(missing_ok=True)


def refuse_others(compass: str, settings: dict[str, Any], texts: Sequence[str]) -> None:
    """Raise TiedtoolsError unless the compass of an earlier training is of these settings and texts."""
    (config, reading), header = Word2Vec(**settings).configured, modelfile.read_header(compass)
    defaults = {field.name: field.default for field in dataclasses.fields(Reading)}
    trained = header["config"] | defaults | {name: header["settings"].get(name, defaults[name]) for name in defaults}
    for name, value in (dataclasses.asdict(config) | defaults | reading).items():
        value = list(value) if isinstance(value, tuple) else value
        if name not in ("threads", "precision", "phrases") and trained.get(name) != value:
            raise TiedtoolsError(f"{compass}: was trained with `{name}={trained.get(name)}`; choose another folder")
    with open(compass + manifest.SUFFIX, "rb") as file:
        inputs = manifest.loads(file.read(), file.name)["inputs"]
    phrases = settings.get("phrases")
    files = [str(file) for file in (None if phrases == NONE else phrases, *texts) if is_path(file)]
    with digests.Recorder() as recorder:
        for text in files:
            with open_source(text) as source:
                while source.read(1 << 20):
                    pass
    if [source["sha256"] for source in inputs] != [source["sha256"] for source in recorder.found]:
        raise TiedtoolsError(f"{compass}: was trained on other texts; choose another folder")


def read_slices(folder: str) -> dict[str, Runs]:
    """Return the Runs of each slice in a folder, by name in order.

    Raises TiedtoolsError if it has no slices, lacks the vectors of one, or their dimensions differ.
    """
    try:
        names = Path(folder, SLICES).read_text("utf-8", "surrogateescape").split("\n")[:-1]
    except OSError:
        names = []
    if not names:
        raise TiedtoolsError(f"{folder}: no slices in {SLICES}; give a folder written by `tiedtools w2v --slices`")
    files = {name: os.path.join(folder, f"{name}.runs") for name in names}
    for name, file in files.items():
        if not os.path.exists(file):
            raise TiedtoolsError(f"{folder}: slice {name} is not trained; run the same `tiedtools w2v` command again")
    slices = {name: Runs.load(file) for name, file in files.items()}
    for runs in slices.values():
        refuse_dimensions(slices[names[0]].matrix.shape[-1], runs.matrix.shape[-1])
    return slices
