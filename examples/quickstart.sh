#!/bin/sh
# Train word vectors on a text in two ways, print nearest neighbors, and evaluate the vectors on word similarity.
#
#     sh examples/quickstart.sh TEXT FOLDER WORD...
#
# TEXT has words separated by white space, one sentence per line, and may be compressed. The vectors are written to FOLDER.
set -eu
[ $# -ge 3 ] || { echo "usage: sh $0 TEXT FOLDER WORD..." >&2; exit 2; }
text=$1 folder=$2
shift 2
mkdir -p "$folder"
pairs=$(dirname -- "$0")/technical-pairs.txt

# Print each command before it runs.
PS4='
$ '
set -x

# CBOW as in word2vec.c, and with scores that fit the PMI of words and the gradients and rates that go with them.
tiedtools w2v -size 100 -iter 10 -output "$folder/vectors.txt" "$text"
tiedtools w2v --fit-pmi -size 100 -iter 10 -output "$folder/pmi.txt" "$text"

# Nearest neighbors of each word.
tiedtools nn "$folder/pmi.txt" "$@" --top 5

# Rank correlation with scores of pairs, with 95% intervals; any file with lines `word word score` works.
tiedtools eval-sim "$folder/vectors.txt" "$folder/pmi.txt" --set "$pairs"
