#!/bin/sh
# Gulordava, Aina and Boleda 2018, table 3, and the row that it leaves out: CBOW and skip-gram, untied, tied and tied+L,
# compared on SimLex-999, MEN and Rare Words.
#
#     sh examples/gulordava-table3.sh TEXT FOLDER [w2v OPTIONS]
#
# The paper's text has 100 million words of Wikipedia and a vocabulary of 50,000 (--max-vocab 50000), and does not say
# how many epochs.
set -eu
[ $# -ge 2 ] || { echo "usage: sh $0 TEXT FOLDER [w2v OPTIONS]" >&2; exit 2; }
text=$1 folder=$2
shift 2
mkdir -p "$folder"
for cbow in 1 0; do
    for sharing in "" --tie --tie-linear; do
        name=$([ $cbow = 1 ] && echo cbow || echo skipgram)$sharing
        echo "$name" >&2
        tiedtools w2v $sharing -cbow $cbow --write in -size 300 -sample 1e-4 -iter 3 -binary 1 --log-json "$folder/$name.json" \
            -output "$folder/$name.bin" "$@" "$text"
    done
done
cd "$folder"
tiedtools eval-sim cbow.bin cbow--tie.bin cbow--tie-linear.bin skipgram.bin skipgram--tie.bin skipgram--tie-linear.bin \
    --set simlex --set men --set rw
