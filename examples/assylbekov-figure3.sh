#!/bin/sh
# Assylbekov and Takhanov 2018, figure 3, word-level model: number of principal components of the input vectors and of the output
# vectors of an untied language model that retain a given proportion of the variance.
#
#     sh examples/assylbekov-figure3.sh MODEL.npz [pca OPTIONS]
#
# `--plot figure3.png` plots the curves, `--components` prints them.
set -eu
[ $# -ge 1 ] || { echo "usage: sh $0 MODEL.npz [pca OPTIONS]" >&2; exit 2; }
model=$1
shift
tiedtools pca "$model:in" "$model:out" "$@"
