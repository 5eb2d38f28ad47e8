#!/bin/sh
# Press and Wolf 2017, table 8: translation with untied embeddings, with those of the decoder tied (WT), and with all three tied (TWWT).
#
#     sh examples/press-wolf-table8.sh SOURCE TARGET VALID-SOURCE VALID-TARGET TEST-SOURCE TEST-TARGET FOLDER [nmt OPTIONS]
#
# Prints tying, parameters, and BLEU of the test text, which is split at blanks. The paper's settings are --preset press-wolf-nmt
# --bpe 89500; for small texts, --preset multi30k --bpe 10000. Rerun the same command to resume an interrupted run.
set -eu
[ $# -ge 7 ] || { echo "usage: sh $0 SOURCE TARGET VALID-SOURCE VALID-TARGET TEST-SOURCE TEST-TARGET FOLDER [nmt OPTIONS]" >&2; exit 2; }
source=$1 target=$2 valid_source=$3 valid_target=$4 test_source=$5 test_target=$6 folder=$7
shift 7
mkdir -p "$folder"
for tie in none decoder all; do
    name=$folder/$tie
    tiedtools nmt --tie $tie --source "$source" --target "$target" --valid-source "$valid_source" --valid-target "$valid_target" \
        --checkpoint "$name.checkpoint" --resume --save-model "$name.npz" --log-json "$name.json" -output "$name.txt" "$@"
    tiedtools translate "$name.npz" "$test_source" --normalize >"$name.out"
    parameters=$(sed -n 's/.*"params": \([0-9]*\).*/\1/p' "$name.json")
    echo "$tie $parameters $(tiedtools bleu "$test_target" <"$name.out")"
done
