#!/bin/sh
# Inan, Khosravi and Socher 2017, table 4: the ten words that two models, the baseline and REAL, think the likeliest to follow each
# of some beginnings of sentences, side by side: number, word and probability by one and by the other. With a TEXT, then the mean
# probabilities of `<unk>`, the, a and an in all its predictions: word, by one, by the other, and the word's share of TEXT.
#
#     sh examples/inan-table4.sh BASELINE.npz REAL.npz BEGINNINGS [TEXT]
#
# The models are those of examples/inan-table1.sh; BEGINNINGS is a text with a beginning on each line.
set -eu
[ $# -eq 3 ] || [ $# -eq 4 ] || { echo "usage: sh $0 BASELINE.npz REAL.npz BEGINNINGS [TEXT]" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tiedtools predict "$1" "$3" >"$folder/baseline"
tiedtools predict "$2" "$3" | cut -f 2- >"$folder/real"
paste "$folder/baseline" "$folder/real"
if [ $# -eq 4 ]; then
    words="--average <unk> --average the --average a --average an"
    tiedtools ppl "$1" "$4" --batch 64 $words | tail -n 4 | cut -f 1,2 >"$folder/baseline"
    tiedtools ppl "$2" "$4" --batch 64 $words | tail -n 4 | cut -f 2,3 >"$folder/real"
    paste "$folder/baseline" "$folder/real"
fi
