"""Test plots, `tiedtools plot`, and the logs it reads."""

import json
import os
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from common import refused

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation import pictures, similarity
from tiedtools.evaluation.pictures import read_log, read_points, read_speeds
from tiedtools.evaluation.similarity import SimilaritySet, disagreements, judge
from tiedtools.vectors.vectors import Vectors

matplotlib = pytest.importorskip("matplotlib")
LOG = [
    {"epoch": 1, "lr": 1.0, "train_ppl": 300.0, "valid_ppl": 200.0, "seconds": 60.0},
    {"epoch": 2, "lr": 1.0, "train_ppl": 150.0, "valid_ppl": 120.0, "seconds": 130.0},
    {"epoch": 3, "lr": 1.0, "train_ppl": 90.0, "valid_ppl": 125.0, "seconds": 240.0},
    {"best_epoch": 2, "test_ppl": 118.0},
]


def write_log(path, lines=LOG):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def vectors(tmp_path):
    Vectors([f"w{k}" for k in range(40)], np.random.default_rng(1).standard_normal((40, 6))).write(tmp_path / "v.txt")
    return tmp_path / "v.txt"


@pytest.fixture
def axes(tmp_path):
    with pictures.picture(str(tmp_path / "x.png")) as axes:
        yield axes


def shown(axes):
    """Return (name, x, y) of the lines in the legend, without markers."""
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    lines = [line for line in axes.get_lines() if line.get_marker() == "None"]
    return [(name, *map(list, line.get_data())) for name, line in zip(names, lines, strict=True)]


# Files


@pytest.mark.parametrize("name, start", [("x.png", b"\x89PNG\r\n"), ("x.SVG", b"<?xml")])
def test_plots_are_written_atomically_and_reproducibly(name, start, tmp_path):
    path, before = tmp_path / name, []
    for _ in range(2):
        with pictures.picture(str(path)) as axes:
            axes.plot([1, 2], [3, 4])
        before.append(path.read_bytes())
    assert before[0] == before[1] and before[0].startswith(start)
    with pytest.raises(ZeroDivisionError), pictures.picture(str(path)) as axes:
        raise ZeroDivisionError
    assert path.read_bytes() == before[0] and os.listdir(tmp_path) == [name]


def test_unsupported_extensions_and_missing_matplotlib(tmp_path, monkeypatch):
    for name in ("x.pdf", "x", "-", "png"):
        refused(lambda: pictures.picture(str(tmp_path / name)).__enter__(), ": plots are written as PNG or SVG; use a")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(TiedtoolsError, match=r'need Matplotlib: pip install "tiedtools\[plot\]"'):
        pictures.picture(str(tmp_path / "x.png")).__enter__()
    assert os.listdir(tmp_path) == []


def test_characters_without_a_font_are_reported_once(tmp_path, messages):
    with pictures.picture(str(tmp_path / "x.png")) as axes:
        pictures.words(axes, np.eye(3)[:, :2], ["\U0001f980", "\U0001f981", "c"])
    assert messages().endswith("x.png: Matplotlib's fonts lack some characters, which are shown as boxes\n")


# Logs and curves


def test_logs_and_tables(tmp_path):
    assert read_log(write_log(tmp_path / "log")) == LOG[:3]
    for text, message in (
        ("{}\n[1]\n", ":2: not a JSON object"), ("\nx\n", ":2: not a JSON"), ("{}\n", ": holds no ep"),
        ('[["epoch", 1]]\n', ":1: not a JSON object"), ("[" * 100_000, ":1: not a JSON object"),
        ('{"epoch": 1}\n', ":1: seconds is missing or not"), ('{"run": 1, "epoch": 1}\n', ":1: is of one of several"),
        ('{"epoch": 1, "seconds": 2, "loss": "3"}\n', ":1: loss is missing or not a valid number"),
        ('{"epoch": true, "seconds": 2}\n', ":1: epoch is missing or not a valid number"),
        ('{"epoch": 1, "seconds": Infinity}\n', ":1: seconds is missing or not a valid number"),
        ('{"epoch": 1, "seconds": 2, "loss": -1.7e308}\n', ":1: loss is missing or not a valid number"),
        ('{"epoch": 1, "seconds": 1%s}\n' % ("0" * 400), ":1: seconds is missing or not a valid number"),
    ):  # fmt: skip
        (tmp_path / "log").write_text(text)
        refused(lambda: read_log(tmp_path / "log"), f"{tmp_path / 'log'}{message}")
    (path := tmp_path / "t").write_text(TABLE)
    assert read_points(path, "beta", "distance") == [(1, 0.1, ""), (0, 1, ""), (1, 0.3, ""), (0, 0.9, ""), (1, 0.2, "")]
    assert read_points(path, "beta", "distance", "seed")[2:4] == [(1, 0.3, "2"), (0, 0.9, "2")]
    for text, message in (
        ("beta\n1\n", ": has no column 'distance'; its columns: beta"),
        ("", ": has no column 'beta'; its columns: none"),
        ("beta\tdistance\n", ": has no rows to plot"),
        ("beta\tdistance\n\n1\t2\n1\n\n", ":4: expected 2 columns, found 1"),
        ("beta\tdistance\n1\tx\n", ":2: beta and distance must be numbers"),
        ("beta\tdistance\n1\tnan\n", ":2: beta and distance must be numbers"),
    ):
        path.write_text(text)
        refused(lambda: read_points(path, "beta", "distance"), f"{path}{message}")


def test_curves_of_one_or_several_metrics(axes):
    runs = [("runs/_a$1$.json", LOG[:3]), ("runs/b.json", LOG[1:3])]
    pictures.curves(axes, runs, ["valid_ppl"])
    assert shown(axes) == [("_a$1$.json", [1, 2, 3], [200, 120, 125]), ("b.json", [2, 3], [120, 125])]
    assert not any(text.get_parse_math() for text in axes.get_legend().get_texts())
    dots = [line.get_data() for line in axes.get_lines() if line.get_marker() == "o"]
    assert [(x[0], y[0]) for x, y in dots] == [(2, 120), (2, 120)]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("epoch", "validation perplexity", "log")
    axes.clear()
    epochs = [{"epoch": k, "seconds": 1.0, "valid_bleu": bleu} for k, bleu in enumerate((3.0, 30.5, 29.0), 1)]
    pictures.curves(axes, [("a", epochs)], ["valid_bleu"])
    (dot,) = (line for line in axes.get_lines() if line.get_marker() == "o")
    assert [float(x) for (x,) in dot.get_data()] == [2, 30.5] and "BLEU" in axes.get_ylabel()
    axes.clear()
    pictures.curves(axes, [("a.json", LOG[:3])], ["train_ppl", "valid_ppl"], "seconds")
    assert shown(axes) == [
        ("a.json, training", [1, 130 / 60, 4], [300, 150, 90]),
        ("a.json, validation", [1, 130 / 60, 4], [200, 120, 125]),
    ]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("elapsed time, minutes", "perplexity")
    pictures.curves(axes, [("a.json", [{**LOG[0], "loss": 5.7}])], ["loss", "train_ppl"])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a.json, loss", "a.json, training"]
    axes.clear()
    epochs = [{"epoch": 1, "loss": 3.0, "valid_ppl": None}, {"epoch": 2, "loss": None}, {"epoch": 3, "loss": 2.0}]
    assert pictures.common_figure([("a", epochs)]) == "loss" and pictures.common_figure([("a", LOG[:3])]) == "valid_ppl"
    pictures.curves(axes, [("a", epochs)], ["loss"])
    assert shown(axes) == [("a", [1, 3], [3, 2])]
    assert (axes.get_ylabel(), axes.get_yscale()) == ("loss, nats per prediction", "linear")
    refused(lambda: pictures.curves(axes, [("a", epochs)], ["valid_ppl"]), "a: has no valid_ppl; it has loss")
    refused(lambda: pictures.curves(axes, [("a", epochs[1:2])], ["loss"]), "a: has no loss; it has nothing to plot")


TABLE = "seed\tbeta\tdistance\n1\t1\t.1\n1\t0\t1\n2\t1\t.3\n2\t0\t.9\n3\t1\t.2\n"


def test_means_and_their_spread(axes):
    pictures.means(axes, [(1, 0.1, ""), (0, 1, ""), (1, 0.3, ""), (0, 0.9, ""), (1, 0.2, "")], ("beta", "d"))
    (line, _, (bars,)) = axes.containers[0]
    np.testing.assert_allclose([np.float64(part) for part in line.get_data()], [[0, 1], [0.95, 0.2]])
    spread = [np.diff(ends[:, 1])[0] / 2 for ends in bars.get_segments()]
    np.testing.assert_allclose(spread, [np.std([0.9, 1], ddof=1), 0.1])
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_legend()) == ("beta", "d", None)
    axes.clear()
    pictures.means(axes, [(1, 2, "M"), (1, 3, "D"), (2, 4, "D")], ("x", "y"))
    assert all(float(x).is_integer() for x in axes.get_xticks())  # such as epochs
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["M", "D"]
    assert [box[0].get_data()[1].tolist() for box in axes.containers] == [[2], [3, 4]]


BENCH = dict(
    rows=[
        dict(name="tiedtools sg", threads=1, words_per_s=10, slowest=9, fastest=11, share=0.5),
        dict(name="tiedtools sg", threads=2, words_per_s=20, slowest=15, fastest=22),
        dict(name="gensim sg", threads=2, words_per_s=5, slowest=4, fastest=6),
        dict(name="tiedtools sg", part="softmax", microseconds=3),
    ]
)


def test_speeds(axes, tmp_path):
    for what in "sentences", "words":
        (tmp_path / "bench.json").write_text(json.dumps(BENCH).replace("words", what))
        unit, rows = read_speeds(tmp_path / "bench.json")
        assert unit == f"{what} per second" and rows[1] == ("tiedtools sg", 2, 20, 15, 22) and len(rows) == 3
    pictures.speeds(axes, [(name, *speeds) for name, _, *speeds in rows[1:]], unit)
    assert [bar.get_width() for bar in axes.patches] == [20, 5] and axes.get_xlabel() == unit
    assert [label.get_text() for label in axes.get_yticklabels()] == ["tiedtools sg", "gensim sg"]
    assert len({bar.get_facecolor() for bar in axes.patches}) == 2


@pytest.mark.parametrize(
    "content", ["", "[]", '{"rows": []}', '{"rows": [{"name": "a"}]}', '{"rows": [{"name": 1}]}', "{"]
)
def test_other_files_are_no_speeds(tmp_path, content):
    (tmp_path / "bench.json").write_text(content)
    refused(lambda: read_speeds(tmp_path / "bench.json"), "bench.json: not a benchmark's result")


def test_retained_variance_by_number_or_percentage(axes):
    pictures.retained(axes, [("a", [0.5, 1.0]), ("b", [0.7, 1.0])])
    assert shown(axes) == [("a", [0, 1, 2], [0, 50, 100]), ("b", [0, 1, 2], [0, 70, 100])]
    axes.clear()
    pictures.retained(axes, [("a", [0.5, 1.0]), ("b", [0.2, 0.4, 0.8, 1.0])])
    assert shown(axes)[0] == ("a", [0, 50, 100], [0, 50, 100]) and shown(axes)[1][1] == [0, 25, 50, 75, 100]
    assert "% of the dimension" in axes.get_xlabel()


# Labels


def test_labels_cover_neither_points_nor_each_other(axes):
    points = np.random.default_rng(2).standard_normal((60, 2)) * [3, 1]
    pictures.words(axes, points, [f"word{k}" for k in range(60)], [0, 1])
    axes.figure.draw_without_rendering()
    renderer = axes.figure.canvas.get_renderer()
    boxes = np.array([text.get_window_extent(renderer).extents for text in axes.texts])
    assert len(boxes) == 60
    at = axes.transData.transform(points)
    inside = (at[:, None] > boxes[:, :2]).all(2) & (at[:, None] < boxes[:, 2:]).all(2)
    assert not inside.any()
    cover = (boxes[:, None, :2] < boxes[:, 2:]).all(2) & (boxes[:, None, 2:] > boxes[:, :2]).all(2)
    assert cover.sum() == 60  # each overlaps only itself
    assert (boxes[:, :2] >= axes.bbox.min).all() and (boxes[:, 2:] <= axes.bbox.max).all()
    far = np.linalg.norm((boxes[:, :2] + boxes[:, 2:]) / 2 - at, axis=1) > 60
    assert far.sum() <= len(axes.get_lines()) < 60
    assert {text.get_color() for text in axes.texts[:2]} == {pictures.RED}


def test_similarity_plot(axes):
    plane = Vectors(list("abcd"), [[1, 0], [0, 1], [1, 1], [1, 0.1]])
    pairs = [("a", "b"), ("a", "c"), ("a", "d"), ("a", "x")]
    toy = SimilaritySet("some/toy$x$", "", pairs, np.array([9.0, 5.0, 7.0, 1.0]))
    judged = judge(plane, toy)
    assert disagreements(toy, judged, 1).tolist() == [0] and disagreements(toy, judged, 9).tolist() == [0, 1, 2]
    assert disagreements(toy._replace(scores=judged.cosines), judged._replace(cosines=toy.scores), 1).tolist() == [0]
    pictures.similarity(axes, toy, judged, similarity.summarize(toy, judged)[0], disagreements(toy, judged, 1))
    assert axes.get_title(loc="left").startswith("toy$x$: Spearman's rho -0.500 [")
    assert axes.get_title(loc="left").endswith("3 of 4 pairs")
    np.testing.assert_allclose(axes.collections[0].get_offsets(), np.stack([toy.scores, judged.cosines], 1)[:3])
    assert [text.get_text() for text in axes.texts] == ["a-b"]


# Command line


def test_commands_draw(run, vectors, tmp_path):
    (pairs := tmp_path / "toy.set").write_text("".join(f"w{k} w{k + 1} {k % 5}\n" for k in range(39)))
    log, table, bench = write_log(tmp_path / "log.json"), tmp_path / "table", tmp_path / "bench"
    table.write_text(TABLE)
    bench.write_text(json.dumps(BENCH))
    for k, args in enumerate(
        [
            ["curves", log, log],
            ["curves", "-", "-y", "train_ppl", "-y", "valid_ppl", "-x", "seconds"],
            ["means", table, "-x", "beta", "-y", "distance", "--by", "seed"],
            ["speed", bench],
            ["words", vectors],
            ["words", vectors, "w1", "w2", "-k", 5],
            ["similarity", vectors, "--set", pairs],
        ]
    ):
        path = tmp_path / f"{k}.png"
        result = run("plot", *args, "-output", path, input=log.read_bytes())
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
        assert path.read_bytes().startswith(b"\x89PNG")
    result = run("pca", vectors, vectors, "--plot", tmp_path / "p.svg")
    assert result.exit_code == 0 and "words" in result.stdout and (tmp_path / "p.svg").exists()


def test_densities_integrate_to_one(axes):
    values = np.random.default_rng(1).beta(2, 5, (200, 300))
    pictures.densities(axes, [("a, hw1", values), ("b, hw1", np.full((4, 1), 0.995))], "gate")
    (name, x, y), (_, _, other) = shown(axes)
    assert name == "a, hw1" and np.mean(y) == pytest.approx(1) and np.mean(other) == pytest.approx(1)
    np.testing.assert_allclose(y, [30 * at * (1 - at) ** 4 for at in x], atol=0.3)
    assert other[-1] == pytest.approx(100) and (axes.get_xlabel(), axes.get_ylabel()) == ("gate", "density")


def test_odd_file_names_and_unknown_words(run, vectors, tmp_path):
    log, pairs = (tmp_path / os.fsdecode(name) for name in (b"log\xe9\x01", b"set\xe9\x01"))
    write_log(log)
    pairs.write_text("w1 w2 1\nw3 w4 2\nw5 w6 3\n")
    assert run("plot", "similarity", tmp_path / "no", "--set", pairs, "-output", tmp_path / "no.svg").exit_code == 1
    for k, args in enumerate((["curves", log], ["similarity", vectors, "--set", pairs])):
        assert run("plot", *args, "-output", tmp_path / f"{k}.svg").exit_code == 0
        ElementTree.parse(tmp_path / f"{k}.svg")
    result = run("plot", "words", vectors, "w1", "no", "w2", "w3", "--seed", 2, "-output", tmp_path / "x.png")
    told = f"--seed has no effect with --method pca\ntiedtools: {vectors}: no vector for 'no'\n"
    assert result.exit_code == 1 and result.stderr == told and (tmp_path / "x.png").exists()
    result = run("plot", "words", vectors, "w1", "no", "w2", "-output", tmp_path / "x.png")
    assert result.exit_code == 1 and "for 'no'\ntiedtools: a map needs three words or more, not 2" in result.stderr


def test_errors_are_one_line(run, vectors, tmp_path):
    log, out = write_log(tmp_path / "log"), ["-output", tmp_path / "x.png"]
    for args, message, status in (
        (["curves", log], "-output", 2),
        (["curves", "-", "-", *out], "standard input can be read only once", 2),
        (["curves", log, "-output", "x.gif"], "x.gif: plots are written as PNG or SVG", 2),
        (["curves", vectors, *out], "v.txt:1: not a JSON object", 1),
        (["curves", log, "-y", "loss", *out], "log: has no loss; it has valid_ppl, train_ppl", 1),
        (["curves", tmp_path / "none", *out], "none", 1),
        (["speed", *out], "standard input: not a benchmark's result", 1),
        (["means", log, "-x", "a", "-y", "b", *out], "log: has no column 'a'", 1),
        (["words", "-", *out], "three words or more, not 2", 1),  # without </s>
        (["words", tmp_path / "none", *out], "none", 1),
        (["similarity", vectors, "--set", "nowhere", *out], "nowhere: no such file", 1),
        (["similarity", vectors, *out], "--set", 2),
    ):
        run.fails(status, message, "plot", *args, input="</s> 1 2\na 3 4\nb 5 6\n")
    assert sorted(os.listdir(tmp_path)) == ["log", "v.txt"]


def test_attention_is_drawn_from_top_to_bottom(axes):
    pictures.attention(axes, ["a", "</s>"], ["$x", "y", "</s>"], np.array([[0.75, 0.25], [0.5, 0.5], [0, 1]]))
    axes.figure.draw_without_rendering()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["$x", "y", "</s>"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "</s>"]
    (mesh,) = axes.collections
    assert mesh.get_array().tolist() == [[0.75, 0.25], [0.5, 0.5], [0, 1]] and axes.yaxis_inverted()
