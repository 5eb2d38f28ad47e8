#!/bin/sh
# Train word vectors on a text, print nearest neighbors, and evaluate the vectors on word similarity.
#
#     sh examples/quickstart.sh TEXT VECTORS WORD...
#
# TEXT has words separated by white space, one sentence per line, and may be compressed. The vectors are written to VECTORS.
set -eu
[ $# -ge 3 ] || { echo "usage: sh $0 TEXT VECTORS WORD..." >&2; exit 2; }
text=$1 vectors=$2
shift 2
pairs=$(dirname -- "$0")/technical-pairs.txt

# Print each command before it runs.
PS4='
$ '
set -x

# CBOW with tied input and output vectors, and a quarter of the dimensions negated in the input (fixed signs).
tiedtools w2v --tie-signs -size 100 -iter 20 -output "$vectors" "$text"

# Nearest neighbors of each word.
tiedtools nn "$vectors" "$@" --top 5

# Rank correlation with human scores; any file with lines `word word score` works.
tiedtools eval-sim "$vectors" --set "$pairs"
