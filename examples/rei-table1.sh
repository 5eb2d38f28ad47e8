#!/bin/sh
# Rei 2015, table 1: RNN language models of sentences, wider ones beside those with a document vector, perplexities of the
# test text; and ten validation sentences with those whose document vectors are the closest, as in table 3.
#
#     sh examples/rei-table1.sh TRAIN VALID TEST FOLDER [rnnlm OPTIONS]
#
# examples/wiki-sentences.sh makes such texts. A run that was stopped goes on when the same command is given again.
set -eu
[ $# -ge 4 ] || { echo "usage: sh $0 TRAIN VALID TEST FOLDER [rnnlm OPTIONS]" >&2; exit 2; }
train=$1 valid=$2 test=$3 folder=$4
shift 4
mkdir -p "$folder"
for size in 100+0 120+0 100+20 135+0 100+35; do
    name=$folder/$size
    tiedtools rnnlm -hidden "${size%+*}" --doc-dim "${size#*+}" --sentences -train "$train" -valid "$valid" -test "$test" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/$size \1/p" "$name.json"
done
tiedtools similar "$folder/100+20.npz" "$valid" --sample 10
