#!/bin/sh
# Assylbekov and Takhanov 2018, figure 2: densities of the transform gates of the first highway layer. UNTIED has this
# layer of its own at input and output (--reuse emb,hw2), TIED reuses it (--reuse all).
#
#     sh examples/assylbekov-figure2.sh UNTIED.npz TIED.npz figure2.png
set -eu
[ $# -eq 3 ] || { echo "usage: sh $0 UNTIED.npz TIED.npz figure2.png" >&2; exit 2; }
tiedtools plot gates "$1" "$2" --layer 1 --output "$3"
