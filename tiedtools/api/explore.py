"""A page of word vectors: one HTML file with a map of the words, their neighbors, and their paths through time slices.

Shapes: N words on the page, n of them in a part (vectors, runs, or one time slice), R runs.
"""

from __future__ import annotations

import base64
import html
import json
import os
import pkgutil
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tiedtools.api.evaluation import vectors_of
from tiedtools.api.slices import read_slices
from tiedtools.base.errors import Contradiction, TiedtoolsError, library, printable
from tiedtools.base.messages import log
from tiedtools.base.settings import Range, checked, one_of
from tiedtools.evaluation import uncertainty
from tiedtools.evaluation.comparison import PROJECTIONS, word_map
from tiedtools.files.output import open_output, refuse_clashes
from tiedtools.text.sources import Path, counted, is_path
from tiedtools.text.vocab import END
from tiedtools.vectors.counts import default_min_count
from tiedtools.vectors.edit import refuse_dimensions
from tiedtools.vectors.neighbors import Candidates, neighbors
from tiedtools.vectors.norms import unit
from tiedtools.vectors.runs import Runs, is_runs, is_slices
from tiedtools.vectors.vectors import Vectors, files_read

FIRST = {False: 20_000, True: 5_000}  # default number of words; True: of several runs
MAPPED = 5  # runs whose cosines determine the map
QUESTIONS = 256  # words whose neighbors are found together


def explore(
    vectors: Any, output: Path, *, first: int | None = None, top: int = 10, min_count: int | None = None,
    projection: str = "pca", seed: int = 1, format: str | None = None, errors: str = "strict", skip_bad: bool = False
) -> None:  # fmt: skip
    """Write a page of word vectors, HTML that needs no server and no network, as `tiedtools explore`.

    vectors  Vectors, Runs, a trained model, a dict of Runs by time slice, or a path as for `tiedtools explore`

    The other arguments are its options, whose defaults None are explained there, and those of Vectors.read.
    Raises TiedtoolsError if Plotly is not installed (`pip install "tiedtools[explore]"`).
    """
    plotly = library("plotly.offline", "a word map needs Plotly", "explore")
    one_of("projection", projection, PROJECTIONS)
    first, top = checked("first", first, int | None, Range(3)), checked("top", top, int, Range(1, 1000))
    min_count, seed = checked("min_count", min_count, int | None, Range(0)), checked("seed", seed, int, Range(0))
    if os.path.splitext(os.fspath(output))[1].lower() not in ("", ".html", ".htm"):
        raise Contradiction(f"{output}: the page is HTML; use a name ending in .html")
    if is_path(vectors):
        refuse_clashes([os.fspath(output)], files_read(os.fspath(vectors), format))
    with open_output(os.fspath(output)) as file:
        parts = parts_of(vectors, dict(format=format, errors=errors, skip_bad=skip_bad))
        data = contents(parts, first, top, min_count, projection, seed)
        path = vectors if is_path(vectors) else getattr(vectors, "path", None) or "Word vectors"
        sizes = f"{len(data['words']):,} words", f"{len(parts)} time slices", f"{data['runs']} runs"
        values = dict(
            title=html.escape(printable(os.path.basename(os.fspath(path).rstrip("/")))),
            summary=", ".join(size for size in sizes if not size.startswith("1 ")),
            plotly=plotly.get_plotlyjs(),
            data=json.dumps(data).replace("<", "\\u003c"),
        )
        template = (pkgutil.get_data(__name__, "explore.html") or b"").decode()
        file.write(re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template).encode())


def contents(
    parts: dict[str, Any], first: int | None, top: int, min_count: int | None, projection: str, seed: int
) -> dict[str, Any]:
    """Return the data of the page; `frames` has a dict for each time slice, or one, of arrays in base64.

    ids [N, top] are the nearest words, -1: none; scores [N, top, 1 or 4] are their cosines or, for several runs, the
    cosine, its interval, and the share of runs that list the word; x, y, and cosines (to the first slice) are nan for
    words without a vector.
    """
    runs = max(len(part) if isinstance(part, Runs) else 1 for part in parts.values())
    words, counts = chosen(parts, first or FIRST[runs > 1], min_count)
    N, row_of, columns = len(words), {word: row for row, word in enumerate(words)}, 4 if runs > 1 else 1
    if N < 3:
        raise TiedtoolsError(f"{counted(N, 'word')}, too few for a map; lower `min_count`, or give more words")
    frames, places = [], []
    for part in parts.values():
        own_words, units, answers = shown(part, words, top, shared=len(parts) > 1)
        rows = np.array([row_of[word] for word in own_words], np.int64)
        mapped = units.any(1) & np.isfinite(units).all(1)
        places.append((rows[mapped], units[mapped]))
        refuse_dimensions(places[0][1].shape[1], units.shape[1])
        ids, scores = np.full((N, top), -1.0), np.zeros((N, top, columns))
        for row, answer in zip(rows, answers):
            for place, (word, *values) in enumerate(answer):
                ids[row, place], scores[row, place] = row_of[word], values[:columns]
        frames.append(dict(ids=ids, scores=scores))
    points, axes = word_map(np.concatenate([units for _, units in places]), projection, seed)
    start = np.zeros((N, places[0][1].shape[1]), np.float32)  # the first vector of each word
    for frame, (rows, units) in zip(frames, places):
        start[rows] = np.where(start[rows].any(1, keepdims=True), start[rows], units)
        of_words = np.full((3, N), np.nan, np.float32)
        of_words[:, rows] = *points[: len(rows)].T, (start[rows] * units).sum(1)
        points = points[len(rows) :]
        frame |= zip(("x", "y", "cosines"), of_words)
    pack = lambda array: base64.b64encode(array.astype("<f4").tobytes()).decode()
    packed = [{name: pack(array) for name, array in frame.items()} for frame in frames]
    packed = [{"counts": count.tolist(), **frame} for count, frame in zip(counts, packed)]
    of_page = dict(names=[*map(str, parts)], top=top, columns=columns, axes=list(axes), runs=runs)
    return dict(words=words, frames=packed, counted=any(count[0] > 0 for count in counts), **of_page)


def parts_of(source: Any, reading: dict[str, Any]) -> dict[str, Any]:
    """Return the Vectors or Runs of each time slice by name; without slices, of one named ""."""
    if isinstance(source, Mapping):
        if not source:
            raise TiedtoolsError("no time slices; give at least one")
        return dict(source)
    if not is_path(source):
        return {"": source if isinstance(source, Runs) else vectors_of(source)}
    path = os.fspath(source)
    if is_slices(path):
        return dict(read_slices(path))
    return {"": Runs.read(path) if is_runs(path) else Vectors.read(path, **reading)}


def chosen(parts: dict[str, Any], first: int, min_count: int | None) -> tuple[list[str], list[np.ndarray]]:
    """Return the `first` most frequent words that occur at least `min_count` times, and their counts in each part.

    `</s>` is left out: `w2v` does not train its random vector, which can determine a principal component. If counts are
    unknown, words are in the order of the file, and their "counts" are 0 to -1.
    """
    words = list(dict.fromkeys(word for part in parts.values() for word in part.words if word != END))
    counts = []
    for part in parts.values():
        if (of_part := part.counts) is None or not of_part.any():
            if min_count:
                raise Contradiction("`min_count`: the counts of these words are unknown; omit it")
            return words[:first], [-np.arange(len(words[:first])) / len(words)] * len(parts)
        counts.append(np.array([of_part[part.index[word]] if word in part.index else 0 for word in words], np.float64))
    total = np.sum(counts, 0)
    least = default_min_count(np.hstack([part.counts for part in parts.values()])) if min_count is None else min_count
    if rare := int((total < least).sum()):
        log.info(f"leaving out {rare:,} of {len(words):,} words, with counts below {least}")
    least = max(least, any(isinstance(part, Runs) for part in parts.values()))  # a slice has the words of all slices
    rows = [row for row in np.argsort(-total, kind="stable")[:first] if total[row] >= least]
    return [words[row] for row in rows], [count[rows] for count in counts]


def shown(part: Any, words: list[str], top: int, shared: bool) -> tuple[list[str], np.ndarray, list[list[Any]]]:
    """Return those of `words` that a part has, their vectors for the map, and their nearest words.

    The dot product of two vectors is the mean of the words' cosines over up to MAPPED runs. If runs share a space, as
    those of time slices do, the vectors are means over runs. A vector of 0 or nan is not on the map. A nearest word is
    (word, cosine, low, high, share of the runs that list it).
    """
    if isinstance(part, Runs):
        rows = [part.index[word] for word in words if word in part.index]
        arrays = part.matrix[:, rows], part.present[:, rows], part.counts[rows], part.training, part.whole[:, rows]
        part = Runs([part.words[row] for row in rows], *arrays)
        if len(part) > 1:
            some = part.on_whole_text if len(part.whole) else part
            seen = [unit(m) * (p > 0)[:, None] for m, p in zip(some.matrix[:MAPPED], some.present)]
            found = uncertainty.neighbors(part, [[(row, 1)] for row in range(len(rows))], top)
            names = "neighbor", "cosine", "low", "high"
            near = [[(*(a[name] for name in names), a["in_top"] / a["runs"]) for a in answer] for answer in found]
            return part.words, unit(sum(seen) if shared else np.concatenate(seen, 1)), near
        part = Vectors(*part[0])
    part = part.restrict(words)
    candidates, batches = Candidates(part), (part.words[k : k + QUESTIONS] for k in range(0, len(part), QUESTIONS))
    found = [answer for batch in batches for answer in neighbors(candidates, batch, top)]
    return part.words, unit(part.matrix), [[(word, x, x, x, 1) for word, x in answer] for answer in found]
