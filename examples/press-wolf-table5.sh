#!/bin/sh
# Press and Wolf 2017, table 5: large LSTMs, with dropout and with Bayesian dropout and weight decay, untied and tied.
#
#     sh examples/press-wolf-table5.sh TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# Two layers of 1500 units take days. A run that was stopped goes on when the same command is given again.
set -eu
[ $# -ge 4 ] || { echo "usage: sh $0 TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
train=$1 valid=$2 test=$3 folder=$4
shift 4
mkdir -p "$folder"
for preset in press-wolf-large gal-large; do
    for sharing in "" --tie; do
        name=$folder/$preset$sharing
        tiedtools lstm --preset "$preset" $sharing -train "$train" -valid "$valid" -test "$test" \
            --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
        sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/$preset$sharing \1/p" "$name.json"
    done
done
