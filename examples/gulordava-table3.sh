#!/bin/sh
# Gulordava, Aina, and Boleda 2018, table 3, and tied CBOW, which the paper omits: CBOW and skip-gram, untied, tied, and tied+L,
# compared on SimLex-999, MEN, and Rare Words.
#
#     sh examples/gulordava-table3.sh TEXT FOLDER [w2v OPTIONS]
#
# The paper trains on 100 million words of Wikipedia with a vocabulary of 50,000 (--max-vocab 50000) and does not state
# the number of epochs.
set -eu
[ $# -ge 2 ] || { echo "usage: sh $0 TEXT FOLDER [w2v OPTIONS]" >&2; exit 2; }
text=$1 folder=$2
shift 2
mkdir -p "$folder"
for cbow in 1 0; do
    for tying in "" --tie --tie-linear; do
        name=$([ $cbow = 1 ] && echo cbow || echo skipgram)$tying
        echo "$name" >&2
        tiedtools w2v $tying -cbow $cbow --write in -size 300 -sample 1e-4 -iter 3 -binary 1 --log-json "$folder/$name.json" \
            -output "$folder/$name.bin" "$@" "$text"
    done
done
cd "$folder"
tiedtools eval-sim cbow.bin cbow--tie.bin cbow--tie-linear.bin skipgram.bin skipgram--tie.bin skipgram--tie-linear.bin \
    --set simlex --set men --set rw
