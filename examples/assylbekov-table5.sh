#!/bin/sh
# Assylbekov and Takhanov 2018, table 5: perplexity of models trained on one text on another text, with the words of the
# latter's training text as vocabulary.
#
#     sh examples/assylbekov-table5.sh OTHERTRAIN OTHERTEST MODEL.npz...
set -eu
[ $# -ge 3 ] || { echo "usage: sh $0 OTHERTRAIN OTHERTEST MODEL.npz..." >&2; exit 2; }
train=$1 test=$2
shift 2
words=$(mktemp)
trap 'rm -f "$words"' EXIT
tiedtools vocab -min-count 1 -output "$words" "$train"
for model; do
    printf '%s\t' "$model"
    tiedtools ppl "$model" "$test" --vocabulary "$words"
done
