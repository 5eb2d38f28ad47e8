#!/bin/sh
# Assylbekov and Takhanov 2018, figure 3, of its word-level model: how many principal components of the input and of the output
# vectors of an untied language model keep how much of their variance.
#
#     sh examples/assylbekov-figure3.sh MODEL.npz [pca OPTIONS]
#
# With `--plot figure3.png` the curves are drawn, with `--components` printed.
set -eu
[ $# -ge 1 ] || { echo "usage: sh $0 MODEL.npz [pca OPTIONS]" >&2; exit 2; }
model=$1
shift
tiedtools pca "$model:in" "$model:out" "$@"
