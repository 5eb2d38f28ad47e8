#!/bin/sh
# Inan, Khosravi, and Socher 2017, table 1: LSTMs with variational dropout (VD), with the augmented loss in addition (AL), with
# reused embeddings (RE), and with both (REAL).
#
#     sh examples/inan-table1.sh PRESET GAMMA TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# PRESET is inan-small, inan-medium, or inan-large, with the suffix -wt2 for Wikitext-2. GAMMA is the weight of the augmented
# loss, .5 to .8 for PTB and 1 to 1.5 for Wikitext-2. Rerun the same command to resume an interrupted run.
set -eu
[ $# -ge 6 ] || { echo "usage: sh $0 PRESET GAMMA TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
preset=$1 gamma=$2 train=$3 valid=$4 test=$5 folder=$6
shift 6
mkdir -p "$folder"
for model in VD AL RE REAL; do
    case $model in
        VD) options= ;;
        AL) options="--augment $gamma" ;;
        RE) options="--tie --no-output-bias" ;;
        REAL) options="--tie --no-output-bias --augment $gamma" ;;
    esac
    name=$folder/$model
    tiedtools lstm --preset "$preset" $options -train "$train" -valid "$valid" -test "$test" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/$model \1/p" "$name.json"
done
