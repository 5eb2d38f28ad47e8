#!/bin/sh
# Rei 2015, figure 3: test perplexity against the number of parameters added to a model with 100 hidden units, as further units (M)
# or as a document vector (D), for several seeds. FOLDER/figure3.tsv gets one line per point.
#
#     sh examples/rei-figure3.sh TRAIN VALID TEST FOLDER [SEEDS [rnnlm OPTIONS]]
#     tiedtools plot means FOLDER/figure3.tsv -x parameters -y perplexity --by more -output figure3.svg
#
# examples/wiki-sentences.sh prepares the texts. Rerun the same command to resume; finished runs are not repeated.
set -eu
[ $# -ge 4 ] || { echo "usage: sh $0 TRAIN VALID TEST FOLDER [SEEDS [rnnlm OPTIONS]]" >&2; exit 2; }
train=$1 valid=$2 test=$3 folder=$4 seeds=${5:-10}
shift 4
[ $# -eq 0 ] || shift
mkdir -p "$folder"
[ -e "$folder/runs.tsv" ] || printf 'seed\tM\tD\tparams\tperplexity\n' >"$folder/runs.tsv"
for seed in $(seq "$seeds"); do
    for size in "100 0" "110 0" "120 0" "135 0" "100 10" "100 20" "100 35"; do
        M=${size% *} D=${size#* } log=$folder/log.json
        ! grep -q "^$seed	$M	$D	" "$folder/runs.tsv" || continue
        tiedtools rnnlm -hidden "$M" --doc-dim "$D" --sentences --seed "$seed" -train "$train" -valid "$valid" -test "$test" \
            --checkpoint "$folder/$seed-$M-$D.checkpoint" --resume --log-json "$log" -output /dev/null "$@"
        printf '%s\t%s\t%s\t%s\t%s\n' "$seed" "$M" "$D" "$(sed -n 's/.*"params": \([0-9]*\).*/\1/p' "$log")" \
            "$(sed -n 's/.*"test_ppl": \([0-9.]*\).*/\1/p' "$log")" >>"$folder/runs.tsv"
        rm -f "$folder/$seed-$M-$D.checkpoint"
    done
done
# The run without additional parameters is the first point of both curves.
awk -F '\t' 'NR == FNR { if ($2 == 100 && $3 == 0) base[$1] = $4; next }
    FNR == 1 { print "seed\tmore\tparameters\tperplexity" }
    FNR > 1 { if ($2 > 100 || !$3) print $1 "\tM\t" $4 - base[$1] "\t" $5; if ($2 == 100) print $1 "\tD\t" $4 - base[$1] "\t" $5 }
' "$folder/runs.tsv" "$folder/runs.tsv" >"$folder/figure3.tsv"
