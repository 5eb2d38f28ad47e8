#!/bin/sh
# Press and Wolf 2017, table 5: large LSTMs with dropout, untied and tied; and with Bayesian dropout, untied with weight decay and
# tied without it.
#
#     sh examples/press-wolf-table5.sh TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# Two layers of 1500 units take days to train. Rerun the same command to resume an interrupted run.
set -eu
[ $# -ge 4 ] || { echo "usage: sh $0 TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
train=$1 valid=$2 test=$3 folder=$4
shift 4
mkdir -p "$folder"
for row in press-wolf-large "press-wolf-large --tie" gal-large "gal-large --tie --weight-decay 0"; do
    name=$folder/$(echo "$row" | tr -d " ")
    tiedtools lstm --preset $row -train "$train" -valid "$valid" -test "$test" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/${name##*/} \1/p" "$name.json"
done
