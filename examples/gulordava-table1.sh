#!/bin/sh
# Gulordava, Aina, and Boleda 2018, table 1: untied, tied, and tied+L LSTM language models of one size.
#
#     sh examples/gulordava-table1.sh SIZE TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# SIZE is HIDDEN-EMBEDDINGS as in `tiedtools lstm --list-presets`: 200-200, 400-200, 400-400, 600-400, or 600-600. If the two
# differ, the tied model is skipped. Rerun the same command to resume an interrupted run.
set -eu
[ $# -ge 5 ] || { echo "usage: sh $0 SIZE TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
size=$1 train=$2 valid=$3 test=$4 folder=$5
shift 5
mkdir -p "$folder"
for tying in "" --tie --tie-linear; do
    [ "$tying" != --tie ] || [ "${size%-*}" = "${size#*-}" ] || continue
    name=$folder/$size$tying
    tiedtools lstm --preset "gulordava-$size" $tying -train "$train" -valid "$valid" -test "$test" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/${name##*/} \1/p" "$name.json"
done
