"""Test word similarity: reading sets, Spearman's rho, policies for unknown words, and the bootstrap."""

import math

import numpy as np
import pytest
from scipy import stats
from similaritycase import check_complaint, write_set, write_toy

from tiedtools.evaluation import similarity
from tiedtools.evaluation.pairfiles import read_pairs
from tiedtools.evaluation.similarity import SimilaritySet, bootstrap, compare, interval, judge, read_set, spearman
from tiedtools.vectors.vectors import Vectors

PLANE = Vectors(["a", "b", "c", "Dog", "null"], [[1, 0], [0, 1], [1, 1], [3, 4], [0, 0]])


def set_of(*triples):
    pairs = [(a, b) for a, b, _ in triples]
    return SimilaritySet("toy", "toy.txt", pairs, np.array([float(score) for *_, score in triples]))


@pytest.fixture
def toy(tmp_path):
    return write_toy(tmp_path)


# Reading


def test_sets_are_sorted_whatever_their_layout(tmp_path):
    path = tmp_path / "set"
    for text in (
        "dog cat 7.5\r\nred   blue 3\r\n",
        "\ufeffdog,cat,7.5\nred, blue, 3",
        "# comment\n\nfirst,second,score\n  \nblue,red,3\n# more\ndog,cat,7.5\n",
    ):
        path.write_bytes(text.encode())
        similarity_set = read_set(path, "toy")
        assert similarity_set.pairs == [("blue", "red"), ("cat", "dog")]
        assert similarity_set.scores.tolist() == [3, 7.5]
        assert (similarity_set.name, similarity_set.path) == ("toy", str(path))
    similarity_set = read_set(write_set(tmp_path / "set", [("new york", "city", 3), ("city", "new york", 3)]))
    assert similarity_set.pairs == [("city", "new york")] * 2


# Spearman


def test_ranks_agree_with_scipy_also_in_resamples(monkeypatch):
    rng = np.random.default_rng(1)
    for trial in range(100):
        P = int(rng.integers(3, 80))
        x = rng.integers(1 + P // 3, size=P) if trial % 2 else rng.standard_normal(P)
        y = rng.integers(4, size=P) + x * (trial % 3)
        if np.ptp(x) and np.ptp(y):
            assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    rng = np.random.default_rng(2)
    scores, cosines = rng.integers(5, size=30), np.round(rng.standard_normal(30), 1)
    draws = np.random.default_rng(9).integers(30, size=(25, 30))
    expected = [stats.spearmanr(scores[draw], cosines[draw]).statistic for draw in draws]
    assert bootstrap(scores, [cosines], 25, 9)[0] == pytest.approx(expected, abs=1e-12)
    monkeypatch.setattr(similarity, "BLOCK", 100)
    assert bootstrap(scores, [cosines], 25, 9)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "x, y", [([], []), ([1], [2]), ([1, 2, 3], [4, 4, 4]), ([7, 7], [1, 2]), ([1, 2], [1, np.nan])]
)
def test_spearman_is_nan_where_undefined(x, y):
    x, y = np.array(x, float), np.array(y, float)
    assert math.isnan(spearman(x, y))
    assert all(map(math.isnan, interval(bootstrap(x, [y], 20, 1)[0])))


# Policies


def test_policies_for_unknown_words_and_case():
    toy = set_of(("a", "c", 1), ("a", "x", 2), ("x", "y", 3), ("a", "null", 4))
    skip, zero, mean = (judge(PLANE, toy, oov) for oov in ("skip", "zero", "mean"))
    for judged in (skip, zero, mean):
        assert judged.known.tolist() == [True, False, False, True]
        assert judged.oov_words == 2 and judged.cosines[0] == pytest.approx(math.sqrt(0.5))
        assert judged.cosines[3] == 0
    assert skip.used.tolist() == [True, False, False, True]
    assert zero.used.all() and zero.cosines[1:3].tolist() == [0, 0]
    # The mean of the five vectors is (1, 1.2).
    assert mean.used.all() and mean.cosines[1:3] == pytest.approx([1 / math.sqrt(2.44), 1])
    toy = set_of(("a", "Dog", 1), ("a", "dog", 2), ("A", "c", 3))
    assert judge(PLANE, toy, case="as-is").known.tolist() == [True, False, False]
    assert judge(PLANE, toy, case="lower").known.tolist() == [False, False, True]
    assert judge(PLANE, toy, case="fallback").known.tolist() == [True, False, True]
    both = Vectors(["us", "US", "a"], [[1, 0], [0, 1], [0, 1]])
    toy = set_of(("US", "a", 1))
    tied = Vectors(["a", "b", "c"], [[3, 4, 5], [9, 12, 15], [4, 4, 3]])  # equal cosines, but for rounding
    assert np.ptp(judge(tied, set_of(("a", "c", 1), ("b", "c", 2))).cosines) == 0
    assert [judge(both, toy, case=case).cosines[0] for case in ("as-is", "lower", "fallback")] == [1, 0, 1]
    plain, dotted = "istanbul", "i\u0307stanbul"
    for words, rows in (([plain], [-1, 0, 0]), ([dotted], [-1, 0, 0]), ([plain, dotted], [-1, 1, 1]),
                        ([plain, "İstanbul"], [1, 0, 1]), (["ıstanbul", "stanbul"], [-1, -1, -1])):  # fmt: skip
        index = {word: row for row, word in enumerate(words)}
        assert [similarity.find_row(index, "İstanbul", case) for case in ("as-is", "lower", "fallback")] == rows


def test_rho_agrees_with_gensim(toy, tmp_path):
    """gensim's case_insensitive upper-cases both sides, so it also finds "Apple" for "apple"; no policy here does."""
    keyedvectors = pytest.importorskip("gensim.models.keyedvectors")
    vectors = Vectors.read(toy[0])
    theirs = keyedvectors.KeyedVectors.load_word2vec_format(toy[0])
    ours = read_set(toy[2])
    for oov, dummy in (("skip", False), ("zero", True)):
        expected = theirs.evaluate_word_pairs(toy[2], dummy4unknown=dummy, case_insensitive=False)[1].statistic
        judged = judge(vectors, ours, oov, "as-is")
        assert spearman(ours.scores[judged.used], judged.cosines[judged.used]) == pytest.approx(expected, abs=1e-6)
    capitals = write_set(tmp_path / "capitals", [(a.upper(), b, s) for (a, b), s in zip(ours.pairs, ours.scores)])
    expected = theirs.evaluate_word_pairs(capitals)[1].statistic
    ours = read_set(capitals)
    judged = judge(vectors, ours, "skip", "fallback")
    assert spearman(ours.scores[judged.used], judged.cosines[judged.used]) == pytest.approx(expected, abs=1e-6)


# Bootstrap


def test_widths_of_intervals():
    rng = np.random.default_rng(3)
    assert interval(np.arange(41.0)) == pytest.approx((1, 39))
    for P in (100, 400, 1600):
        x, y = rng.standard_normal((2, P))
        low, high = interval(bootstrap(x, [y], 1000, 1)[0])
        assert low < spearman(x, y) < high
        assert high - low == pytest.approx(2 * 1.96 / math.sqrt(P - 1), rel=0.2)
    # For two pairs rho is 1, -1, or undefined; a resample of three repeats a single pair with probability 1/9.
    for P in (2, 3):
        x = np.arange(P)
        assert interval(bootstrap(x, [x], 1000, 1)[0]) == (-1, 1)
    pairs = similarity.SimilaritySet("toy", "", [("a", "b")] * 3, np.arange(3.0))
    one = similarity.Judged(np.arange(3.0), np.ones(3, bool), np.ones(3, bool), 0)
    assert [compare(pairs, one, one)[0][end] for end in ("low", "high")] == [-2, 2]


def test_resamples_depend_on_the_seed_alone_and_are_paired():
    x, y = np.random.default_rng(4).standard_normal((2, 50))
    one, again, other = (bootstrap(x, [y], 100, seed)[0] for seed in (1, 1, 2))
    assert (one == again).all() and (one != other).any()
    # With common resamples, the mean over two sets of equal size would vary as much as each set.
    rng = np.random.default_rng(5)
    x = rng.standard_normal(200)
    sets = [SimilaritySet("toy", "", [("a", "b")] * 200, x + 1e-6 * k) for k in range(2)]
    one = similarity.Judged(x + rng.standard_normal(200), np.ones(200, bool), np.ones(200, bool), 0)
    two = one._replace(cosines=x)
    for draws in ([similarity.summarize(s, one)[1] for s in sets], [compare(s, one, two)[1] for s in sets]):
        assert abs(np.corrcoef(draws)[0, 1]) < 0.15
    assert abs(np.corrcoef([compare(s, one, two)[2][1:] for s in sets])[0, 1]) < 0.15
    assert compare(sets[0], one, two)[0]["high"] < 0 < compare(sets[0], two, one)[0]["low"]
    # The difference of two nearly equal systems has a far narrower interval than either rho.
    rng = np.random.default_rng(6)
    scores = rng.standard_normal(300)
    first = scores + rng.standard_normal(300)
    second = first + 0.05 * rng.standard_normal(300)
    toy = SimilaritySet("toy", "", [("a", "b")] * 300, scores)
    all_pairs = np.ones(300, bool)
    one, two = (similarity.Judged(cosines, all_pairs, all_pairs, 0) for cosines in (first, second))
    line, single = compare(toy, two, one)[0], similarity.summarize(toy, one)[0]
    assert line["difference"] == spearman(scores, second) - spearman(scores, first)
    assert line["low"] <= line["difference"] <= line["high"]
    assert line["high"] - line["low"] < 0.3 * (single["high"] - single["low"])


def p_value(*arguments):
    return similarity.permutation_test(similarity.exchanges(*arguments))


def test_p_approximates_the_exact_permutation_test(monkeypatch):
    scores, one, two = np.random.default_rng(1).standard_normal((3, 9))
    two += 2 * scores
    r, a, b = (similarity.rank_deviations(x, np.ones((1, 9), np.int64))[0] for x in (scores, one, two))
    rho = lambda x: np.corrcoef(r, x)[0, 1]
    exchanges = [np.array(list(f"{k:09b}")) == "1" for k in range(512)]
    differences = [abs(rho(np.where(e, b, a)) - rho(np.where(e, a, b))) for e in exchanges]
    assert differences[0] == pytest.approx(abs(spearman(scores, two) - spearman(scores, one)))
    expected = np.mean(np.array(differences) >= differences[0] - 1e-9)
    assert 0.02 < expected < 0.5
    drawn = np.random.default_rng(1).integers(2, size=(30, 9)) == 1
    differences = [rho(np.where(e, a, b)) - rho(np.where(e, b, a)) for e in drawn]
    assert similarity.exchanges(scores, one, two, 30, 1)[1:] == pytest.approx(differences)
    p = p_value(scores, one, two, 20_000, 1)
    assert p == pytest.approx(expected, abs=4 * math.sqrt(expected / 20_000))
    assert p == p_value(scores, two, one, 20_000, 1)
    monkeypatch.setattr(similarity, "BLOCK", 100)
    assert p == p_value(scores, one, two, 20_000, 1)
    assert similarity.permutation_test(np.array([0.5, np.nan, 0.1, -0.6])) == 0.75
    assert similarity.permutation_test(np.array([0.5])) is None
    scores, noise = np.random.default_rng(8).standard_normal((2, 200))
    assert p_value(scores, noise, 3 * noise, 99, 1) == 1
    assert p_value(scores, noise, scores, 99, 1) == 0.01
    assert math.isnan(p_value(scores, noise, 0 * noise, 99, 1))


SIMLEX = "word1\tword2\tPOS\tSimLex999\tconc(w1)\tconc(w2)\tconcQ\tAssoc(USF)\tSimAssoc333\tSD(SimLex)\n"

LAYOUTS = {
    "Gur350": "#WORD1:WORD2:Value:POS1:POS2\ncat:dog:1.58:n:n\nred:blue:9:a:a\n",
    "Multilingual SimLex-999": "Word1,Word2,1,2,3,Average Score\ncat,dog,1,2,2,1.58\nred,blue,9,10,8,9\n",
    "SimLex-999": SIMLEX + "cat\tdog\tN\t1.58\t2.72\t2.81\t2\t7.25\t1\t0.41\nred\tblue\tA\t9\t1\t2\t1\t0\t0\t.5\n",
    "SimLex-999, without its header": "cat\tdog\tN\t1.58\t2.72\t0.41\nred\tblue\tA\t9\t1\t2\n",
    "RW": "cat\tdog\t1.58\t1\t0\t3\nred\tblue\t9\t10\t8\t9\n",
    "RW, some ratings missing": "cat\tdog\t1.58\t1\t0\t3\nred\tblue\t9\t10\t\t\n",
    "SimVerb-3500": "cat\tdog\tV\t1.58\tSYNONYMS\nred\tblue\tV\t9\tNONE\n",
    "RG-65": "cat;dog;1.58\r\nred;blue;9\r\n",
    "MEN": "cat dog 1.580000\nred blue 9.000000\n",
    "MEN, lemma form": "cat-n dog-n 1.580000\nred-j blue-v 9.000000\n",
    "WordSim-353": "Word 1,Word 2,Human (mean)\ncat,dog,1.58\nred,blue,9\n",
    "WordSim-353, set1": "Word 1,Word 2,Human (mean),1,2\ncat,dog,1.58,2,1\nred,blue,9,9,9\n",
    "WordSim-353, tabs": "# of 2002\nWord 1\tWord 2\tHuman (mean)\ncat\tdog\t1.58\nred\tblue\t9\n",
    "quoted csv": '"word1","word2","score"\n"cat","dog","1.58"\n"red", "blue", 9\n',
    "quoted, semicolons": '"cat";"dog";1.58\nred;"blue";9\n',
    "quoted, tabs": '"cat"\t"dog"\t1.58\n"red"\tblue\t9\n',
    "header in another language": "Wort1\tWort2\tUrteil\ncat\tdog\t1.58\nred\tblue\t9\n",
    "header of wide lines": "w1 w2 pos gold_score\ncat dog n 1.58\nred blue j 9\n",
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_published_layouts(tmp_path, text):
    (path := tmp_path / "set").write_text(text, newline="")
    assert read_pairs(path) == [("cat", "dog", 1.58), ("red", "blue", 9)]


WORDS = [  # a line, its words
    ('"new york, ny",city,3', ("new york, ny", "city")),
    ('"say ""hi""";hello;3', ('say "hi"', "hello")),
    ('5" disk,floppy,3', ('5" disk', "floppy")),
    ("a;b c 3", ("a;b", "c")),
    ("sun-n light-x 3", ("sun-n", "light-x")),
    ("sun light-n 3", ("sun", "light-n")),
    ("-n x-v 3", ("-n", "x-v")),
    ("word1 word2 3", ("word1", "word2")),
    ("1 2 3", ("1", "2")),
    ("score mean 3", ("score", "mean")),
]


@pytest.mark.parametrize("line, words", WORDS)
def test_words(tmp_path, line, words):
    (path := tmp_path / "set").write_text(line)
    assert read_pairs(path) == [(*words, 3)]


ERRORS = [
    (b"dog cat 1\ndog cat\n", ":2: expected `word word score`, found 'dog cat'"),
    (b"# x\na\tb\t1\n\tdog\t3\n", ":3: expected"),
    (b"a b 1\na b nan\n", ":2: the score 'nan' is not a finite number"),
    (b"a b 1\na b 2\nd\xff e 3\n", ":3: not UTF-8 text"),
    (b"# nothing\nword word score\n", ": holds no word pairs"),
    (b"a b 1\nc d 1_0\n", ":2: the score '1_0' is not a finite number"),
    (b"a b 1\nc\0 d 1\n", ":2: a zero byte"),
    (b"a b 1\n" + 99 * b"c " + b"\n", ":2: expected `word word score`, found 'c c c " + 25 * "c " + "...'"),
    ("cat dog x\na b 1\n", ":1: the score 'x' is not a finite number; correct it, or put # before a header"),
    ("cat dog 3,5\na b 1\n", ":1: expected `word word score`, found 'cat dog 3,5'"),
    ("cat;dog;3,5\na;b;1\n", ":1: the score '3,5' is not a finite number; write a decimal point"),
    ("cat\tdog\tmean 3\na\tb\tx\n", ":2: the score 'x'"),
    ("word1\tword2\tscore\nword1\tword2\tscore\n", ":2: the score 'score' is not a finite number"),
    ("cat dog N 3\n", ":1: expected `word word score`"),
    ("a\tb\t1\t2\n", ":1: several numbers, of which the first, '1', is not the mean of the others; remove all but"),
    ("a\tb\tN\t5\t1\t2\n", ":1: several numbers, of which the first, '5', is not the mean"),
    ("a\tb\tN\tV\n", ":1: expected `word word score`"),
    (",word1,word2,score\n0,a,b,3\n", ":2: the first column has numbers instead of words; remove it"),
    ("word1\tword2\tPOS\tx\na\tb\tN\t1\n", ":1: expected one column named like a score, found none"),
    ("word1,word2,mean,rating\na,b,1,2\n", ":1: expected one column named like a score, found 'mean', 'rating';"),
    (SIMLEX + "cat\tdog\t1.58\t2.72\t2.81\t2\t7.25\t1\t0.41\n", ":2: expected `word word score`"),
    ("take\tgo\tV\t5\tNONE\ntake\tgo\t5\tNONE\n", ":2: expected `word word score`"),
    ("take\tgo\tV\t5\tNONE\ntake\tgo\tV\tNONE\t5\n", ":2: the score 'NONE' is not a finite number"),
    ("a\tb\t1\na\tb\t1\t1\n", ":2: expected `word word score`"),
    ('"a,b,3\n', ":1: unexpected end of data; correct the quotes"),
    ('"a"b,c,3\n', ":1: ',' expected after '\"'; correct the quotes"),
    ('"","b",3\n', ":1: expected `word word score`"),
]


@pytest.mark.parametrize("text, message", ERRORS)
def test_errors_name_the_line(tmp_path, text, message):
    check_complaint(read_set, tmp_path / "set", text if isinstance(text, bytes) else text.encode(), message)
