"""Test sets of analogy questions, accuracy and its intervals, and `tiedtools eval-analogy`."""

import json
import math

import numpy as np
import pytest
from analogycase import by_definition, grid, questions
from scipy import stats
from similaritycase import check_complaint

from tiedtools.evaluation.analogysets import Answered, answer, compare, mcnemar, read_set, summarize, wilson
from tiedtools.vectors.vectors import Vectors

SECTIONS = {"capitals": questions(0, 5), "family": questions(5, 8), "gram1-plural": questions(8, 12)}


def write_set(path, sections):
    lines = [line for name, asked in sections.items() for line in [f": {name}", *map(" ".join, asked)]]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def toy(tmp_path):
    """Return a set and two vector files; the second lacks x0 and answers different questions."""
    other = grid(0.6, 4)
    grid().write(tmp_path / "one.bin")
    Vectors(other.words[1:], other.matrix[1:]).write(tmp_path / "two.bin")
    return write_set(tmp_path / "toy.set", SECTIONS), tmp_path / "one.bin", tmp_path / "two.bin"


def by_section(lines):
    return {line["section"]: line for line in lines}


def test_a_set_is_read_with_its_sections(tmp_path):
    path = tmp_path / "set"
    path.write_bytes(b"\xef\xbb\xbf: capitals of all\r\nRome Italy Paris France\r\n\r\n: gram8\na\tas  b bs\n: none\n")
    analogy_set = read_set(path)
    assert analogy_set.questions == [("Rome", "Italy", "Paris", "France"), ("a", "as", "b", "bs")]
    sections = {name: chosen.tolist() for name, chosen in analogy_set.sections.items()}
    assert list(sections.items()) == [
        ("capitals of all", [True, False]), ("gram8", [False, True]), ("semantic", [True, False]),
        ("syntactic", [False, True]), ("total", [True, True]),
    ]  # fmt: skip
    path.write_text(": one\na b c d\n: two\na b c e\n: one\nd e f g")
    assert {name: chosen.tolist() for name, chosen in read_set(path).sections.items()} == {
        "one": [True, False, True], "two": [False, True, False], "total": [True, True, True]}  # fmt: skip


@pytest.mark.parametrize("text, message", [
    (b": s\na b c d\na b c\n", ":3: expected four words, found 'a b c'"),
    (b": s\na b c d e\n", ":2: expected four words"),
    (b"\na b c d\n", ":2: expected a line `: section` first, found 'a b c d'"),
    (b": s\na b c \xff\n", ":2: not UTF-8 text"),
    (b": s\n: t\n", ": holds no questions"),
    (b": s\na b\na b c d\n", ":3: expected two words, found 'a b c d'"),
])  # fmt: skip
def test_errors_name_the_line(tmp_path, text, message):
    check_complaint(read_set, tmp_path / "set", text, message)


def three_cos_avg(vectors, pairs):
    """Return the best answer to each pair (a, b), by the definition of Drozd et al. (2016)."""
    unit = vectors.matrix.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    answers = []
    for a, _ in pairs:
        others = [unit[vectors.index[t]] - unit[vectors.index[s]] for s, t in pairs if s != a]
        scores = unit @ (unit[vectors.index[a]] + np.mean(others, 0))
        answers.append(next(vectors.words[row] for row in np.argsort(-scores) if vectors.words[row] != a))
    return answers


def test_pairs_are_answered_by_the_mean_offset_of_the_others(tmp_path):
    vectors = grid(2)
    pairs = {"I01 x": [(f"x{k}", f"y{k}") for k in range(8)], "L02 y": [("x2", "y2"), ("x6", "y6")]}
    pairs["E03 alone"] = [("x0", "y0")]
    analogy_set = read_set(write_set(tmp_path / "set", pairs))
    answered = answer(vectors, analogy_set)
    expected = [given == b for asked in list(pairs.values())[:2] for given, (_, b) in
                zip(three_cos_avg(vectors, asked), asked)]  # fmt: skip
    assert answered.right.tolist() == [*expected, False] and 3 < sum(expected) < 12
    assert answered.known.tolist() == [True] * 10 + [False]  # a pair alone has no other offset
    lines = by_section(summarize(analogy_set, answered))
    assert list(lines)[3:] == ["inflectional", "derivational", "encyclopedic", "lexicographic", "total"]
    grammar = {f"gram{name}" if name < "J" else name: asked for name, asked in pairs.items()}
    same = answer(vectors, read_set(write_set(tmp_path / "set", grammar)))
    assert same.right.tolist() == answered.right.tolist()  # the totals of such sections are not asked as sections
    assert lines["inflectional"]["correct"] == sum(expected[:8]) and lines["derivational"]["questions"] == 0
    vectors = grid(0.1)
    plain = {"semantic": [(f"x{k}", f"y{k}") for k in range(6)]}
    several = {"s": [(a, f"none/{b}/x{k}") for k, (a, b) in enumerate(plain["semantic"])]}
    results = [answer(vectors, read_set(write_set(tmp_path / "set", pairs))) for pairs in (plain, several)]
    assert results[0].right.tolist() == results[1].right.tolist() == [True] * 6
    wrong = {"s": [("x0", "y1/y0"), ("x1", "none"), *plain["semantic"][2:]]}
    answered = answer(vectors, read_set(write_set(tmp_path / "set", wrong)))
    assert answered.right[0] and answered.known.tolist() == [True, False, True, True, True, True]


def test_answers_of_the_command(run, toy, tmp_path):
    pairs = write_set(tmp_path / "pairs", {"s": [("x0", "y0"), ("x1", "y1")]})
    assert "\tavg\t" in run("eval-analogy", toy[1], "--set", pairs).stdout.replace("  ", "\t").replace("\t ", "\t")
    for path, method in ((pairs, "add"), (pairs, "both"), (toy[0], "avg")):
        run.fails(2, f"--method {method}", "eval-analogy", toy[1], "--set", path, "--method", method)
    result = run("eval-analogy", toy[2], "--set", toy[0], "--restrict", 2)
    assert result.exit_code == 0
    assert rows(result.stdout.split("\n", 1)[1])[-1]["accuracy"] == "-" and "restrict=2" in result.stdout
    answer = json.loads(run("eval-analogy", toy[2], "--set", toy[0], "--restrict", 2, "--json").stdout)
    assert answer["results"][0]["sections"][-1]["low"] is None
    expected = run("eval-analogy", toy[1], "--set", toy[0]).stdout
    found = run("eval-analogy", "-", "--set", toy[0], input=toy[1].read_bytes()).stdout
    correct, wanted = ([row["correct"] for row in rows(text.split("\n", 1)[1])] for text in (found, expected))
    assert correct == wanted


@pytest.mark.parametrize("method", ["add", "mul"])
def test_correct_answers_match_the_definition(toy, method):
    vectors, analogy_set = grid(), read_set(toy[0])
    answered = answer(vectors, analogy_set, method)
    expected = [by_definition(vectors, asked[:3], method)[0][0] == asked[3] for asked in analogy_set.questions]
    assert answered.right.tolist() == expected and 5 < sum(expected) < len(expected) - 5 and answered.known.all()


def test_restrict_and_sections(toy):
    vectors, analogy_set = grid(), read_set(toy[0])
    few = Vectors(vectors.words[:15], vectors.matrix[:15])
    answered, expected = answer(vectors, analogy_set, restrict=15), answer(few, analogy_set)
    # x0 y0 ... x6 y6 x7: 20 questions of five pairs and 2 of two.
    assert answered.known.sum() == expected.known.sum() == 22 and answered.right.tolist() == expected.right.tolist()
    assert answered.right[answered.known].tolist() != answer(vectors, analogy_set).right[answered.known].tolist()
    lines = by_section(summarize(analogy_set, answer(Vectors.read(toy[2]), analogy_set)))
    assert list(lines) == [*SECTIONS, "semantic", "syntactic", "total"]
    for key in ("questions", "covered", "correct"):
        sums = [lines[name][key] for name in ("semantic", "syntactic", "total")]
        parts = [lines[name][key] for name in SECTIONS]
        assert sums == [parts[0] + parts[1], parts[2], sum(parts)]
    assert lines["capitals"]["covered"] == 12 < lines["capitals"]["questions"] == 20
    for line in lines.values():
        assert line["accuracy"] == line["correct"] / line["covered"]
        assert line["low"] <= line["accuracy"] <= line["high"]


def test_case_policies_and_questions_left_out(tmp_path):
    vectors = Vectors(["rome", "Italy", "paris", "france", "France"], np.eye(5)[[0, 1, 2, 3, 3]])
    analogy_set = read_set(write_set(tmp_path / "set", {"s": [("Rome", "Italy", "Paris", "France")]}))
    found = [answer(vectors, analogy_set, case=case) for case in ("as-is", "lower", "fallback")]
    assert [answered.known.tolist() for answered in found] == [[False], [False], [True]]
    # `france` has the same score and comes first, but is another word.
    assert found[2].right.tolist() == [False]
    # Without `France`, it is the answer.
    assert answer(vectors, analogy_set, restrict=4).right.tolist() == [True]
    vectors = Vectors(["a", "b", "c"], [[1, 0], [1, 1], [0, 1]])
    analogy_set = read_set(write_set(tmp_path / "set", {"s": [("a", "b", "c", "b"), ("a", "a", "a", "b")]}))
    assert answer(vectors, analogy_set).right.tolist() == [False, True]
    vectors = Vectors(["a", "b", "c", "c", "d"], [[1, 0], [1, 1], [0, 1], [0.1, 1], [-1, 1]])
    analogy_set = read_set(write_set(tmp_path / "set", {"s": [("a", "b", "c", "d"), ("b", "a", "d", "c")]}))
    first = Vectors(["a", "b", "c", "d"], vectors.matrix[[0, 1, 2, 4]])
    for restrict in (None, 4):
        assert answer(vectors, analogy_set, restrict=restrict).right.tolist() == [True, True]
        assert answer(first, analogy_set, restrict=restrict).right.tolist() == [True, True]


def test_accuracy_matches_gensim(toy):
    """Uses only lowercase words: gensim uppercases all words and so does not distinguish case."""
    keyedvectors = pytest.importorskip("gensim.models.keyedvectors")
    for path in toy[1:]:
        theirs = keyedvectors.KeyedVectors.load_word2vec_format(path, binary=True)
        vectors, analogy_set = Vectors.read(path), read_set(toy[0])
        for restrict in (None, 15):
            for case in ("as-is", "fallback"):
                total, sections = theirs.evaluate_word_analogies(
                    str(toy[0]), restrict_vocab=restrict or 1000, case_insensitive=case == "fallback"
                )
                lines = by_section(summarize(analogy_set, answer(vectors, analogy_set, "add", restrict, case)))
                for section in sections[:-1]:
                    line = lines[section["section"]]
                    assert line["correct"] == len(section["correct"])
                    assert line["covered"] == len(section["correct"]) + len(section["incorrect"])
                assert lines["total"]["accuracy"] == total


def test_intervals_and_p_agree_with_scipy():
    for right, n in ((0, 1), (3, 10), (10, 10), (250, 1000)):
        expected = stats.binomtest(right, n).proportion_ci(method="wilson")
        assert wilson(right, n) == pytest.approx((expected.low, expected.high), abs=1e-7)
    assert all(map(math.isnan, wilson(0, 0)))
    for gained, lost in ((0, 0), (0, 1), (5, 0), (7, 7), (3, 12), (4000, 4200)):
        expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1
        assert mcnemar(gained, lost) == mcnemar(lost, gained) == pytest.approx(expected, rel=1e-6)


def test_a_difference_is_paired_and_its_interval_covers_the_truth(tmp_path):
    analogy_set = read_set(write_set(tmp_path / "set", {"one": questions(0, 10), "two": questions(10, 12)}))
    known = np.arange(92) < 90
    one, two = (np.arange(92) % 10 < correct for correct in (5, 6))
    lines = by_section(compare(analogy_set, Answered(known, two & known), Answered(np.ones(92, bool), one)))
    swapped = compare(analogy_set, Answered(np.ones(92, bool), one), Answered(known, two & known))
    assert swapped[-1]["questions"] == lines["total"]["questions"] == 90
    line = lines["one"]
    assert (line["questions"], line["accuracy"], line["accuracy_first"]) == (90, 0.6, 0.5)
    assert line["difference"] == pytest.approx(0.1)
    # 9 questions gained, none lost: proportions 10 / 92 and 1 / 92.
    half = 1.959964 * math.sqrt((11 / 92 - (9 / 92) ** 2) / 92)
    assert (line["low"], line["high"]) == pytest.approx((9 / 92 - half, 9 / 92 + half))
    assert line["p"] == pytest.approx(2 / 2**9) and math.isnan(lines["two"]["p"])
    single = wilson(45, 90)
    assert line["high"] - line["low"] < 0.7 * (single[1] - single[0])
    assert lines["two"]["questions"] == 0 and math.isnan(lines["two"]["difference"]) and math.isnan(lines["two"]["low"])


def rows(block):
    header, *lines = block.splitlines()
    return [dict(zip(header.split(), line.split())) for line in lines]


def test_table_and_json_agree(run, toy):
    questions, one, two = toy
    table = run("eval-analogy", one, two, "--set", questions, "--method", "both")
    assert (table.exit_code, table.stderr) == (0, "")
    first_line, rest = table.stdout.split("\n", 1)
    assert first_line == f"# set={questions} case=fallback interval=0.95"
    answer = json.loads(run("eval-analogy", one, two, "--set", questions, "--method", "both", "--json").stdout)
    assert (answer["set_path"], answer["restrict"], answer["case"]) == (str(questions), None, "fallback")
    about = [(result["file"], result["method"]) for result in answer["results"]]
    assert about == [(str(one), "add"), (str(one), "mul"), (str(two), "add"), (str(two), "mul")]
    assert [(result["file"], result["method"]) for result in answer["differences"]] == about[2:]
    for block, results in zip(rest.split("\n\n"), (answer["results"], answer["differences"])):
        expected = [{**line, "method": r["method"], "file": r["file"]} for r in results for line in r["sections"]]
        as_cell = lambda value: f"{value:.4f}" if isinstance(value, float) else str(value)
        assert rows(block) == [{key: as_cell(value) for key, value in line.items()} for line in expected]
    accuracies = [result["sections"][-1]["accuracy"] for result in answer["results"]]
    assert len(set(accuracies)) > 2
    # The second file's words are a subset of the first's, so all its questions are common.
    assert answer["differences"][0]["sections"][-1]["accuracy"] == accuracies[2]
