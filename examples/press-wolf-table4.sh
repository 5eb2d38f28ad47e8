#!/bin/sh
# Press and Wolf 2017, table 4: rank correlation of the cosines of all pairs of words between the input and output vectors of an
# untied model and the vectors of a tied one.
#
#     sh examples/press-wolf-table4.sh UNTIED.npz TIED.npz [compare OPTIONS]
#
# The models are those that --save-model writes, of word2vec (examples/press-wolf-table2.sh) or of LSTMs (press-wolf-table6.sh).
set -eu
[ $# -ge 2 ] || { echo "usage: sh $0 UNTIED.npz TIED.npz [compare OPTIONS]" >&2; exit 2; }
untied=$1 tied=$2
shift 2
tiedtools compare "$untied:in" "$untied:out" "$@"
tiedtools compare "$untied:in" "$tied" "$@"
tiedtools compare "$untied:out" "$tied" "$@"
