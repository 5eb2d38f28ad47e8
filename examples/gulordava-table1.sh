#!/bin/sh
# Gulordava, Aina and Boleda 2018, table 1: LSTM language models, untied, tied and tied+L, of one size.
#
#     sh examples/gulordava-table1.sh SIZE TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# SIZE is hidden-embeddings as in `tiedtools lstm --list-presets`: 200-200, 400-200, 400-400, 600-400 or 600-600. Tied models are
# left out where the two differ. A run that was stopped goes on when the same command is given again.
set -eu
[ $# -ge 5 ] || { echo "usage: sh $0 SIZE TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
size=$1 train=$2 valid=$3 test=$4 folder=$5
shift 5
mkdir -p "$folder"
for sharing in "" --tie --tie-linear; do
    [ "$sharing" != --tie ] || [ "${size%-*}" = "${size#*-}" ] || continue
    name=$folder/$size$sharing
    tiedtools lstm --preset "gulordava-$size" $sharing -train "$train" -valid "$valid" -test "$test" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/${name##*/} \1/p" "$name.json"
done
