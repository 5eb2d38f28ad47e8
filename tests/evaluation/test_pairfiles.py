"""Test that files of word pairs are read in their published layouts, and that others are errors."""

import pytest
from similaritycase import check_complaint

from tiedtools.evaluation.pairfiles import read_pairs

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
    path = tmp_path / "set"
    path.write_text(text, newline="")
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
    path = tmp_path / "set"
    path.write_text(line)
    assert read_pairs(path) == [(*words, 3)]


ERRORS = [
    ("cat dog x\na b 1\n", ":1: the score 'x' is not a finite number; correct it, or put # before a header"),
    ("cat dog 3,5\na b 1\n", ":1: expected `word word score`, found 'cat dog 3,5'"),
    ("a b 1\ncat dog 3,5\n", ":2: expected `word word score`, found 'cat dog 3,5'"),
    ("cat;dog;3,5\na;b;1\n", ":1: expected `word word score`, found 'cat;dog;3,5'"),
    ("cat\tdog\t3,5\na\tb\t1\n", ":1: the score '3,5' is not a finite number"),
    ("cat\tdog\tmean 3\na\tb\tx\n", ":2: the score 'x'"),
    ("word1\tword2\tscore\nword1\tword2\tscore\n", ":2: the score 'score' is not a finite number"),
    ("new york city 3\n", ":1: expected `word word score`"),
    ("cat dog N 3\n", ":1: expected `word word score`"),
    ("a\tb\t1\t2\n", ":1: several numbers, of which the first, '1', is not the mean of the others; remove all but"),
    ("a\tb\tN\t5\t1\t2\n", ":1: several numbers, of which the first, '5', is not the mean"),
    ("a\tb\tN\tV\n", ":1: expected `word word score`"),
    ("word1\tword2\tPOS\tx\na\tb\tN\t1\n", ":1: expected one column named like a score, found none"),
    (
        "word1,word2,mean,rating\na,b,1,2\n",
        ":1: expected one column named like a score, found 'mean', 'rating'; remove",
    ),
    (SIMLEX + "cat\tdog\t1.58\t2.72\t2.81\t2\t7.25\t1\t0.41\n", ":2: expected `word word score`"),
    ("take\tgo\tV\t5\tNONE\ntake\tgo\t5\tNONE\n", ":2: expected `word word score`"),
    ("take\tgo\tV\t5\tNONE\ntake\tgo\tV\tNONE\t5\n", ":2: the score 'NONE' is not a finite number"),
    ("take\tgo\tV\t5\tNONE\ntake\tgo\t5\n", ":2: expected `word word score`"),
    ("a\tb\t1\t1\t1\na\tb\t1\n", ":2: expected `word word score`"),
    ("a\tb\t1\na\tb\t1\t1\n", ":2: expected `word word score`"),
    ('"a,b,3\n', ":1: unexpected end of data; correct the quotes"),
    ('"a"b,c,3\n', ":1: ',' expected after '\"'; correct the quotes"),
    ('"","b",3\n', ":1: expected `word word score`"),
]


@pytest.mark.parametrize("text, message", ERRORS)
def test_errors(tmp_path, text, message):
    check_complaint(read_pairs, tmp_path / "set", text.encode(), message)
