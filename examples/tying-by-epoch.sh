#!/bin/sh
# Mean correlation with human similarity scores by number of epochs: skip-gram, untied, tied, and tied+L.
#
#     sh examples/tying-by-epoch.sh TEXT FOLDER [w2v OPTIONS]
#     tiedtools plot means FOLDER/epochs.tsv -x epochs -y rho --by model -output epochs.svg
#
# Each number of epochs in EPOCHS is a training run of its own, since the learning rate depends on it, with each seed in SEEDS.
# The mean is that of SimLex-999, MEN, and Rare Words (`tiedtools data get wordsim`). Finished runs are not repeated.
set -eu
[ $# -ge 2 ] || { echo "usage: sh $0 TEXT FOLDER [w2v OPTIONS]" >&2; exit 2; }
text=$1 folder=$2
shift 2
mkdir -p "$folder"
table=$folder/epochs.tsv
[ -e "$table" ] || printf 'model\tepochs\tseed\trho\n' >"$table"
for seed in ${SEEDS:-1 2 3}; do
    for epochs in ${EPOCHS:-1 2 3 5 10}; do
        for model in untied tied tied+L; do
            row=$(printf '%s\t%s\t%s\t' "$model" "$epochs" "$seed")
            ! grep -q "^$row" "$table" || continue
            case $model in
                untied) tying= ;;
                tied) tying=--tie ;;
                tied+L) tying=--tie-linear ;;
            esac
            # $tying is one option or none.
            tiedtools w2v $tying -cbow 0 -size 300 -sample 1e-4 --epochs "$epochs" --seed "$seed" "$@" \
                -output "$folder/vectors.$seed" --no-manifest "$text"
            found=$(tiedtools eval-sim "$folder/vectors.$seed" --set simlex --set men --set rw --bootstrap 0 --json)
            rho=$(printf '%s\n' "$found" | sed -n 's/.*"mean_rho": \([-0-9.e+]*\).*/\1/p')
            [ -n "$rho" ] || { echo "$0: no rho of $model, $epochs epochs, seed $seed" >&2; exit 1; }
            printf '%s%s\n' "$row" "$rho" >>"$table"
        done
    done
done
