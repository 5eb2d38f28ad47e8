#!/bin/sh
# Inan, Khosravi, and Socher 2017, table 4: the ten most probable next words after each sentence beginning, according to the
# baseline and to REAL. Columns: line number, then word and probability for each model. With TEXT, also the mean probabilities of
# `<unk>`, the, a, and an over TEXT. Columns: word, baseline, REAL, and relative frequency of the word in TEXT.
#
#     sh examples/inan-table4.sh BASELINE.npz REAL.npz BEGINNINGS [TEXT]
#
# examples/inan-table1.sh trains the models. BEGINNINGS has one sentence beginning per line.
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
