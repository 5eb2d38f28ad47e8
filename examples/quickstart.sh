#!/bin/sh
# Word vectors from a text, their nearest neighbours, and how well they agree with a list of similar words.
#
#     sh examples/quickstart.sh TEXT VECTORS WORD...
#
# TEXT has words between white space, a sentence a line; compressed files will do. VECTORS is written.
set -eu
[ $# -ge 3 ] || { echo "usage: sh $0 TEXT VECTORS WORD..." >&2; exit 2; }
text=$1 vectors=$2
shift 2
pairs=$(dirname -- "$0")/technical-pairs.txt

# Show each command before it runs.
PS4='
$ '
set -x

# CBOW with one matrix for input and output words and a map L between them.
tiedtools w2v --tie-linear -size 100 -iter 20 -output "$vectors" "$text"

# The words used most like each of these.
tiedtools nn "$vectors" "$@" --top 5

# Rank correlation with human judgements; any file of `word word score` lines will do.
tiedtools eval-sim "$vectors" --set "$pairs"
