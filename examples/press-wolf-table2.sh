#!/bin/sh
# Press and Wolf 2017, table 2: input, output, and tied vectors of word2vec's skip-gram on the similarity sets; and the first row
# of table 4: rank correlations of cosines between the three.
#
#     sh examples/press-wolf-table2.sh TEXT FOLDER [w2v OPTIONS]
#
# The paper's text is text8. `tiedtools data get wordsim` downloads the similarity sets.
set -eu
[ $# -ge 2 ] || { echo "usage: sh $0 TEXT FOLDER [w2v OPTIONS]" >&2; exit 2; }
text=$1 folder=$2
shift 2
mkdir -p "$folder"
tiedtools w2v -cbow 0 -output "$folder/untied.txt" --save-model "$folder/untied.npz" "$@" "$text"
tiedtools w2v -cbow 0 --tie -output "$folder/tied.txt" --save-model "$folder/tied.npz" "$@" "$text"
tiedtools eval-sim "$folder/untied.npz:in" "$folder/untied.npz:out" "$folder/tied.npz"
sh "$(dirname "$0")/press-wolf-table4.sh" "$folder/untied.npz" "$folder/tied.npz"
