#!/bin/sh
# Inan, Khosravi and Socher 2017, table 4: the ten words that two models, the baseline and REAL, think the likeliest to follow each
# of some beginnings of sentences, side by side: number, word and probability by one and by the other.
#
#     sh examples/inan-table4.sh BASELINE.npz REAL.npz BEGINNINGS
#
# The models are those of examples/inan-table1.sh; BEGINNINGS is a text with a beginning on each line.
set -eu
[ $# -eq 3 ] || { echo "usage: sh $0 BASELINE.npz REAL.npz BEGINNINGS" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tiedtools predict "$1" "$3" >"$folder/baseline"
tiedtools predict "$2" "$3" | cut -f 2- >"$folder/real"
paste "$folder/baseline" "$folder/real"
