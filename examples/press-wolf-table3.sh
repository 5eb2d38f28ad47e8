#!/bin/sh
# Press and Wolf 2017, table 3: input and output embeddings of the small untied LSTM and those of the tied one on the similarity
# sets; then section 3's check of both models on TEXT: the mean probability of the word just read, and how often it repeats.
#
#     sh examples/press-wolf-table3.sh UNTIED.npz TIED.npz TEXT
#
# examples/press-wolf-table6.sh trains the models. `tiedtools data get wordsim` downloads the similarity sets.
set -eu
[ $# -eq 3 ] || { echo "usage: sh $0 UNTIED.npz TIED.npz TEXT" >&2; exit 2; }
tiedtools eval-sim "$1:in" "$1:out" "$2"
for model in "$1" "$2"; do
    tiedtools ppl "$model" "$3" --batch 64 --repeats | tail -n 1
done
