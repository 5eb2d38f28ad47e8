#!/bin/sh
# Press and Wolf 2017, table 4: rank correlations of the cosines of all word pairs between the input vectors of an untied model, its
# output vectors, and the vectors of a tied model.
#
#     sh examples/press-wolf-table4.sh UNTIED.npz TIED.npz [compare OPTIONS]
#
# The models are files written by --save-model: word2vec (examples/press-wolf-table2.sh) or LSTMs (press-wolf-table6.sh).
set -eu
[ $# -ge 2 ] || { echo "usage: sh $0 UNTIED.npz TIED.npz [compare OPTIONS]" >&2; exit 2; }
untied=$1 tied=$2
shift 2
tiedtools compare "$untied:in" "$untied:out" "$@"
tiedtools compare "$untied:in" "$tied" "$@"
tiedtools compare "$untied:out" "$tied" "$@"
