"""Test mistakes on the command line: each is a line that names it, found before any output is touched."""

import os
import shlex

import pytest
from common import save
from fakelm import FakeLM
from similaritycase import write_toy

# Exit status, command line | what the message names.
MISTAKES = r"""
2 nn - | give the words as arguments
2 nn - east --with - | only once
2 nn one.txt w1 -k 0 | 0
2 nn one.txt w1 --restrict 0 | 0
2 nn | VECTORS
1 nn none.txt east | none.txt
2 analogy one.txt w1 w2 | the number of words must be a multiple of 3, not 2
2 analogy - | give the words as arguments
2 analogy - a b c --with - | only once
2 compare - - | standard input can be read only once
1 compare one.txt other.txt | one.txt, other.txt: 0 words in common
1 compare one.txt none.txt | none.txt
1 compare one.txt two.txt --set nowhere | nowhere: no such file
2 compare one.txt two.txt --words 1 | 1
2 compare one.txt | B
2 align one.txt other.txt --output - | cannot be standard output
2 shift one.txt other.txt --tie-signs | --tie-signs needs --permutations
2 shift . --permutations 2 | not a folder
1 shift one.txt text | .txt file of GloVe; if A and B are texts, give --permutations N
2 docvec one.txt text --json -output v.npy | another name than .npy
2 docvec one.txt text --sif .1 --save v.npy -output v.words | or for two outputs
2 warmup "" | '' is not one of
2 warmup "w2v '" | No closing quotation
2 pca one.txt --json --components | --json includes the curves
2 pca one.txt --plot x.pdf | x.pdf: plots are written as PNG or SVG
1 pca none | none
1 eval-sim one.txt | no similarity set found, and {here}/mirror/EN-SIMLEX-999.txt: cannot be downloaded:
1 eval-sim one.txt --set men | data set 'men' not found: `tiedtools data get men`
1 eval-sim one.txt --set nowhere | nowhere: no such file or data set; `tiedtools data list`
1 eval-sim one.txt --set bad | bad:2: expected `word word score`
1 eval-sim none.txt --set toy.set | none.txt
1 eval-sim one.txt none.txt | none.txt: cannot be read: No such file
1 eval-sim one.txt:out | one.txt: is not a model file
2 eval-sim one.txt --data nowhere | nowhere
2 eval-sim one.txt --bootstrap 9999999999 | 10000000
1 eval-analogy one.txt --set none | none
1 eval-analogy one.txt --set one.txt | one.txt
1 eval-analogy none --set questions | none
2 ppl lm.npz text --unit nats | --unit needs --words
2 ppl lm.npz - - | only once
2 generate lm.npz --temperature nan | finite
2 nbest lm.npz --independent | --ids
1 nbest lm.npz empty | empty: is empty
2 nbest lm.npz --cache-theta 1 | --cache-theta requires --cache N
2 predict lm.npz --cache 9 --cache-lambda 1 | '--cache-lambda': 1.0 is not in the range 0<x<1.
2 ppl lm.npz --cache 9 --cache-theta -1 | '--cache-theta': -1.0 is not in the range 0<=x<=1000.
2 segment text | choose one of --morphs, --syllables, and --chars; --load implies --morphs
2 segment --syllables --save x text | --save requires --morphs, without --load
2 segment --morphs --language de text | --language requires --syllables
2 segment --chars --types --separator @ text | --separator cannot be used with --types
2 segment --chars -output text text | text: is used as both input and output
2 segment --morphs --save - text | standard output: is used as both input and output, or for two outputs
1 w2v text --phrases empty | empty: is empty; give a list
1 w2v text -output nowhere/v | nowhere/v: cannot be written
2 w2v text -output / | name a file in the folder, such as /vectors.txt
2 w2v text -output v.ftz | choose another name, .ftz is for quantized
1 w2v text -read-vocab nowhere | nowhere
1 w2v text -min-count 1000000 | no word
2 w2v text --log-json - | --log-json cannot be standard output
2 w2v text -output "" | empty name
2 w2v text -output x --save-model x | used as both input and output
2 w2v text -alpha nan | finite
2 lm missing --no-tie --tie-linear | --no-tie and --tie-linear are mutually exclusive; choose one
2 w2v missing -hs 1 --tie | hierarchical softmax has no output word vectors to tie; use --negative
2 w2v missing -hs 1 -negative 0 --write out | hierarchical softmax has no output word vectors; use --write in
2 w2v missing --tie-signs --write sum | --write sum: input and output vectors differ only in signs
2 w2v missing --min-alpha .06 | --min-alpha 0.06 is above --lr 0.05; lower it
2 lstm text --tie --hidden 400 | make --size and --hidden equal, or use --tie-linear
2 lstm text -valid x --valid-share .2 | choose one
2 lstm text --hidden 9 --write sum | 200 and 9 dimensions
1 lstm text -debug 0 -valid nowhere/v | nowhere/v: cannot be read
1 lstm text -debug 0 --batch 1000 | lower --batch
2 lm --depth 2 text | --depth describes recurrent highway networks: set --cell rhn
2 lm --cell rhn --forget-bias 1 text | --cell rhn has neither: set it to 0
2 lm --cell rhn --preset day text | --cell rhn has no --drop-weights: set it to 0
2 lm --preset day --tie --subwords chars text | for --subwords, set --reuse
2 lm --subwords chars --segmentation f missing | --segmentation has no effect on characters; use morphs or syllables
2 lm --subwords chars --no-tie --reuse all text | use --reuse none or --reuse plain
2 rnnlm missing -rnnlm m.gz -debug 0 | m.gz: this output is never compressed; remove .gz
2 rnnlm missing -one-iter --epochs 3 -debug 0 | --one-iter trains a single epoch: omit it or --epochs
2 rnnlm -rnnlm missing -gen 3 --resume | --resume needs a TEXT
2 rnnlm -test text -rnnlm m -output v | tests a model: give --rnnlm FILE without --output, or -
1 rnnlm text -debug 0 -rnnlm bad | to train a new one, choose another name
2 rnnlm text -nbest -rnnlm m | --nbest needs --test
2 rnnlm text -dynamic .1 -test text | --dynamic needs --rnnlm FILE
2 rnnlm text -gen 5 -rnnlm m -output v | without --output
2 rnnlm text --valid-share 0 | give --epochs
2 rnnlm text -debug 0 -rnnlm - | -rnnlm cannot be standard output
1 rnnlm text -debug 0 -test . -rnnlm m | .: Is a directory
2 rnnlm -rnnlm m -test - -lm-prob - | read only once
1 rnnlm -rnnlm m -test "" | '': No such file or directory
2 convert missing v.npz | v.npz: would be read as a model file
2 convert missing v.npy.gz | format npy is not compressed
2 convert missing v.tsv --to text | v.tsv: would be read as tsv, but is text
2 convert missing - --to npy | writes two files
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIEDTOOLS_DATA", raising=False)
    monkeypatch.setenv("TIEDTOOLS_CACHE", f"{tmp_path}-cache")
    monkeypatch.setenv("TIEDTOOLS_MIRROR", str(tmp_path / "mirror"))  # instead of the internet
    write_toy(tmp_path)
    save(FakeLM(), "lm.npz")
    files = {"empty": "", "text": "the cat sat on the mat\n" * 200, "bad": "a b 1\nc d\n", "other.txt": "1 2\nx 1 2\n"}
    for name, text in {**files, "questions": ": s\nw1 w2 w3 w4\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("row", MISTAKES.strip("\n").split("\n"))
def test_mistakes_are_one_line(run, here, row):
    line, _, message = row.partition(" | ")
    status, *words = shlex.split(line)
    before = sorted(os.listdir(here))
    run.fails(int(status), message.format(here=here), *words, input=b"")
    assert sorted(os.listdir(here)) == before
