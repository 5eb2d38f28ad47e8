#!/bin/sh
# Gulordava, Aina and Boleda 2018, table 2: LSTM language models of Wikipedia, perplexities and how well their vectors agree with
# people.
#
#     sh examples/gulordava-table2.sh TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# The similarity sets are those of `tiedtools data get wordsim`. A run that was stopped goes on when the same command is given again.
set -eu
[ $# -ge 4 ] || { echo "usage: sh $0 TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
train=$1 valid=$2 test=$3 folder=$4
shift 4
mkdir -p "$folder"
for model in 600-300 600-300--tie-linear 600-600 600-600--tie 600-600--tie-linear; do
    size=${model%%--*}
    sharing=${model#"$size"}
    name=$folder/$model
    tiedtools lstm --preset "gulordava-wiki-$size" $sharing -train "$train" -valid "$valid" -test "$test" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/$model \1/p" "$name.json"
done
tiedtools eval-sim "$folder/600-300.npz:in" "$folder/600-300.npz:out" "$folder/600-300--tie-linear.npz" \
    "$folder/600-600.npz:in" "$folder/600-600.npz:out" "$folder/600-600--tie.npz" "$folder/600-600--tie-linear.npz"
