#!/bin/sh
# Press and Wolf 2017, table 2: input, output and tied vectors of word2vec's skip-gram on the similarity sets, and the first row of
# table 4: how alike the three are.
#
#     sh examples/press-wolf-table2.sh TEXT FOLDER [w2v OPTIONS]
#
# Theirs is text8. The sets are those that `tiedtools data get wordsim` brings.
set -eu
[ $# -ge 2 ] || { echo "usage: sh $0 TEXT FOLDER [w2v OPTIONS]" >&2; exit 2; }
text=$1 folder=$2
shift 2
mkdir -p "$folder"
tiedtools w2v -cbow 0 -output "$folder/untied.txt" --save-model "$folder/untied.npz" "$@" "$text"
tiedtools w2v -cbow 0 --tie -output "$folder/tied.txt" --save-model "$folder/tied.npz" "$@" "$text"
tiedtools eval-sim "$folder/untied.npz:in" "$folder/untied.npz:out" "$folder/tied.npz"
sh "$(dirname "$0")/press-wolf-table4.sh" "$folder/untied.npz" "$folder/tied.npz"
