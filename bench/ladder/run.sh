#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM OUT.csv [SEEDS] [MODEL...]   full 3,000-step runs of rungs of the chapter's ladder on tiny Shakespeare, each
# with several seeds (default 3: 1 2 3; models block and token), one line of CSV a run; then means and spread on standard
# output. Slow: minutes a run. The bounds stand in docs/results.md.
set -euo pipefail
bary=${1:?usage: run.sh PROGRAM OUT.csv [SEEDS] [MODEL...]}
out=${2:?usage: run.sh PROGRAM OUT.csv [SEEDS] [MODEL...]}
seeds=${3:-3}
shift $(($# < 3 ? $# : 3))
models=("$@")
[ ${#models[@]} -gt 0 ] || models=(block token)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -s "$out" ] || echo "model,seed,steps,val_perplexity,train_perplexity,seconds,weights_sha256" >"$out"
for model in "${models[@]}"; do
  for seed in $(seq "$seeds"); do
    grep -q "^$model,$seed," "$out" && continue # a run that is there is not repeated
    "$bary" train --model "$model" --seed "$seed" --max_iters 3000 --eval_interval 0 --out_dir "$work/run" --json >"$work/result" 2>"$work/log" ||
      { cat "$work/log" >&2; exit 1; }
    field() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$work/result"; }
    echo "$model,$seed,$(field steps),$(field val_perplexity),$(field train_perplexity),$(field seconds),$(field weights_sha256)" >>"$out"
    tail -n 1 "$out" >&2
  done
done
awk -F, 'NR > 1 { n[$1]++; v[$1] += $4; t[$1] += $5; v2[$1] += $4 * $4; s[$1] += $6 }
  END { printf "%-18s %5s %12s %8s %12s %10s\n", "model", "seeds", "val (mean)", "spread", "train (mean)", "s a run";
        for (m in n) printf "%-18s %5d %12.2f %8.2f %12.2f %10.0f\n", m, n[m], v[m]/n[m], sqrt((v2[m]/n[m] - (v[m]/n[m])^2 > 0 ? v2[m]/n[m] - (v[m]/n[m])^2 : 0)), t[m]/n[m], s[m]/n[m] }' "$out"
