#!/bin/sh
# Rei 2015, table 1: test perplexities of RNN language models of sentences, with more hidden units or with a document vector;
# and ten validation sentences with the sentences whose document vectors are nearest, as in table 3.
#
#     sh examples/rei-table1.sh TRAIN VALID TEST FOLDER [rnnlm OPTIONS]
#
# examples/wiki-sentences.sh prepares the texts. Rerun the same command to resume an interrupted run.
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
