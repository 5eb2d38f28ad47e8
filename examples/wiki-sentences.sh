#!/bin/sh
# Prepare sentences as in Rei 2015: shuffled, lower-cased, and with words seen fewer than 30 times in training replaced by <unk>.
#
#     xz -dc wiki.train.txt.xz wiki.valid.txt.xz wiki.test.txt.xz |
#         sh examples/wiki-sentences.sh FOLDER [WORDS [VALID [TEST [SEED]]]]
#
# The text has one tokenized sentence per line, in lower case if it is not ASCII (mawk lower-cases only that); empty lines
# are skipped. FOLDER gets VALID sentences in valid.txt (default 10,000), TEST in test.txt (176,564), and sentences with a
# total of up to WORDS words in train.txt (10,000,000).
set -eu
[ $# -ge 1 ] || { echo "usage: sh $0 FOLDER [WORDS [VALID [TEST [SEED]]]] <TEXT" >&2; exit 2; }
folder=$1 words=${2:-10000000} valid=${3:-10000} test=${4:-176564} seed=${5:-1}
mkdir -p "$folder"
cd "$folder"
trap 'rm -f train.all valid.all test.all' EXIT
trap 'exit 130' INT TERM HUP
: >train.all >valid.all >test.all
awk -v seed="$seed" 'BEGIN { srand(seed) } NF { printf "%.9f\t%s\n", rand(), tolower($0) }' | LC_ALL=C sort | cut -f 2- |
    awk -v words="$words" -v valid="$valid" -v test="$test" '
        NR <= valid { print >"valid.all"; next }
        NR <= valid + test { print >"test.all"; next }
        (n += NF) > words { exit }
        { print >"train.all" }'
[ -s train.all ] || { echo "$0: no sentence is left for training; lower VALID and TEST" >&2; exit 1; }
: >train.txt >valid.txt >test.txt
awk '
    counting { for (i = 1; i <= NF; i++) count[$i]++; next }
    { for (i = 1; i <= NF; i++) if (count[$i] < 30) $i = "<unk>"; print >name }' \
    counting=1 train.all counting=0 name=train.txt train.all name=valid.txt valid.all name=test.txt test.all
