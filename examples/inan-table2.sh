#!/bin/sh
# Inan, Khosravi, and Socher 2017, table 2: the small models of table 1, trained separately on each half of Wikitext-2.
#
#     sh examples/inan-table2.sh TRAIN VALID TEST FOLDER [lstm OPTIONS]
#
# TRAIN is an uncompressed text. Rerun the same command to resume an interrupted run.
set -eu
[ $# -ge 4 ] || { echo "usage: sh $0 TRAIN VALID TEST FOLDER [lstm OPTIONS]" >&2; exit 2; }
train=$1 valid=$2 test=$3 folder=$4
shift 4
here=$(dirname "$0")
mkdir -p "$folder"
half=$(($(wc -l <"$train") / 2))
head -n "$half" "$train" >"$folder/part1.txt"
tail -n "+$((half + 1))" "$train" >"$folder/part2.txt"
for part in part1 part2; do
    echo "$part"
    sh "$here/inan-table1.sh" inan-small-wt2 1.25 "$folder/$part.txt" "$valid" "$test" "$folder/$part" "$@"
done
