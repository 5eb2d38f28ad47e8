#!/bin/sh
# Assylbekov and Takhanov 2018, table 2: a subword-aware model with each kind of reuse, or table 4 with the lists in REUSE.
#
#     sh examples/assylbekov-table2.sh KIND-SIZE TRAIN VALID TEST FOLDER [lstm OPTIONS]
#     REUSE="emb,hw1 hw2" sh examples/assylbekov-table2.sh KIND-SIZE TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# KIND is morphs, syllables, or chars, SIZE small or medium. Rerun the same command to resume an interrupted run.
set -eu
[ $# -ge 5 ] || { echo "usage: sh $0 KIND-SIZE TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
model=$1 train=$2 valid=$3 test=$4 folder=$5
shift 5
case $model in chars-*) weights=cnn,hw1,hw2 ;; *) weights=hw1,hw2 ;; esac
mkdir -p "$folder"
for reuse in ${REUSE:-plain none emb "$weights" all}; do
    name=$folder/$model-$reuse rate=
    case $model-$reuse in syllables-medium-none | syllables-medium-hw1,hw2) rate="--lr .5" ;; esac
    tiedtools lstm --preset "assylbekov-$model" --reuse "$reuse" $rate -train "$train" -valid "$valid" -test "$test" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    sed -n "s/.*\"test_ppl\": \([0-9.]*\).*/${name##*/} \1/p" "$name.json"
done
