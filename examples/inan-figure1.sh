#!/bin/sh
# Inan, Khosravi, and Socher 2017, figure 1: subspace distance between the input and output embeddings. LSTMs are trained on 20,000
# consecutive words of a text (WORDS in the environment sets another number), different ones for each seed: with a proportion BETA
# of the augmented loss from 0 to 1 at temperature 10 (panel a), and with BETA 1 at several temperatures (panel b).
# FOLDER/figure1.tsv gets one line per run.
#
#     sh examples/inan-figure1.sh TEXT FOLDER [SEEDS [lstm OPTIONS]]
#     tiedtools plot means FOLDER/figure1a.tsv -x beta -y distance -output figure1a.svg
#
# Finished runs are not repeated.
set -eu
[ $# -ge 2 ] || { echo "usage: sh $0 TEXT FOLDER [SEEDS [lstm OPTIONS]]" >&2; exit 2; }
text=$1 folder=$2 seeds=${3:-10}
shift 2
[ $# -eq 0 ] || shift
mkdir -p "$folder"
lines=$(wc -l <"$text")
header=$(printf 'seed\tbeta\ttau\tdistance')
[ -e "$folder/figure1.tsv" ] || echo "$header" >"$folder/figure1.tsv"
for seed in $(seq "$seeds"); do
    part=$folder/words$seed.txt
    awk -v words="${WORDS:-20000}" -v first=$((lines * (seed - 1) / seeds)) 'NR > first && n < words { n += NF + 1; print }' "$text" >"$part"
    for point in "0 10" ".2 10" ".4 10" ".6 10" ".8 10" "1 10" "1 1" "1 2" "1 5" "1 20"; do
        beta=${point% *} tau=${point#* }
        ! grep -q "^$seed	$beta	$tau	" "$folder/figure1.tsv" || continue
        tiedtools lstm --size 300 --no-output-bias --dropout 0 --unit-embeddings --augment-share "$beta" --tau "$tau" \
            --detach --init-lstm .3 --loss-scale sum --batch 5 --steps 10 --lr .1 --clip 30 --schedule decay --decay-after 300 \
            --epochs 300 --valid-share 0 --seed "$seed" \
            --save-model "$folder/model.npz" -output /dev/null --no-manifest -train "$part" "$@"
        distance=$(tiedtools compare "$folder/model.npz:in" "$folder/model.npz:out" | awk '$1 == "subspace_distance" { print $2 }')
        printf '%s\t%s\t%s\t%s\n' "$seed" "$beta" "$tau" "$distance" >>"$folder/figure1.tsv"
    done
done
awk -F '\t' 'NR == 1 || $3 == 10' "$folder/figure1.tsv" >"$folder/figure1a.tsv"
awk -F '\t' 'NR == 1 || $2 == 1' "$folder/figure1.tsv" >"$folder/figure1b.tsv"
