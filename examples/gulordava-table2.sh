#!/bin/sh
# Gulordava, Aina, and Boleda 2018, table 2: perplexities of LSTM language models of Wikipedia, and Spearman's rho of their vectors
# with human similarity scores.
#
#     sh examples/gulordava-table2.sh HIDDEN EMB TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# The paper uses 600 units and embeddings of 300 and 600, which take days to train; 200 and 100 take hours.
# `tiedtools data get wordsim` downloads the similarity sets. Rerun the same command to resume an interrupted run.
set -eu
[ $# -ge 6 ] || { echo "usage: sh $0 HIDDEN EMB TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
hidden=$1 emb=$2 train=$3 valid=$4 test=$5 folder=$6
shift 6
mkdir -p "$folder"
smaller=$folder/$hidden-$emb equal=$folder/$hidden-$hidden
for name in "$smaller" "$smaller--tie-linear" "$equal" "$equal--tie" "$equal--tie-linear"; do
    case $name in "$smaller" | "$smaller"--*) size=$emb ;; *) size=$hidden ;; esac
    case $name in *--tie-linear) tying=--tie-linear ;; *--tie) tying=--tie ;; *) tying= ;; esac
    tiedtools lstm --preset gulordava-wiki-600-300 --hidden "$hidden" --size "$size" $tying \
        -train "$train" -valid "$valid" -test "$test" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/${name##*/} \1/p" "$name.json"
done
tiedtools eval-sim "$smaller.npz:in" "$smaller.npz:out" "$smaller--tie-linear.npz" "$equal.npz:in" "$equal.npz:out" \
    "$equal--tie.npz" "$equal--tie-linear.npz"
