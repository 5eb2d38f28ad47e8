#!/bin/sh
# Assylbekov and Takhanov 2018, table 3: nearest neighbors of words in and outside the vocabulary.
#
#     sh examples/assylbekov-table3.sh MODEL.npz [WORD...]
set -eu
[ $# -ge 1 ] || { echo "usage: sh $0 MODEL.npz [WORD...]" >&2; exit 2; }
model=$1
shift
[ $# -ge 1 ] || set -- while his you richard trading computer-aided misinformed looooook
tiedtools nn --top 4 "$model" "$@"
