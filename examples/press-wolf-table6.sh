#!/bin/sh
# Press and Wolf 2017, table 6, or table 7 with other texts: the small model untied, tied (WT), with projection regularization (PR),
# and with both.
#
#     sh examples/press-wolf-table6.sh TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# Rerun the same command to resume an interrupted run.
set -eu
[ $# -ge 4 ] || { echo "usage: sh $0 TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
train=$1 valid=$2 test=$3 folder=$4
shift 4
mkdir -p "$folder"
for variant in "" --tie "--projection .154" "--tie --projection .154"; do
    name=$folder/small$(echo "$variant" | tr -d " ")
    tiedtools lstm --preset press-wolf-small $variant -train "$train" -valid "$valid" -test "$test" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/${name##*/} \1/p" "$name.json"
done
