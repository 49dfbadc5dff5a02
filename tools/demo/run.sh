#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM   the main job on real text in about a minute: the chapter's one-block transformer and, beside it, the
# model that sees one token only, on tiny Shakespeare; then the trained model writes.
set -euo pipefail
bary=${1:?usage: run.sh path/to/bary}
cd "$(dirname "$0")/../.."
out=out/demo
rm -rf "$out"
mkdir -p "$out"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

dataset=tinyshakespeare
prompt="ROMEO:"
# Zero updates: is the text to be had, and what does a model write that has learned nothing?
if ! "$bary" train --dataset "$dataset" --out_dir "$out/untrained" --max_iters 0 --eval_iters 1 >"$out/log" 2>&1; then
  cat "$out/log" >&2
  say "No tiny Shakespeare here (see above): the demo goes on with the built-in two-noun language."
  dataset=two-nouns
  prompt="the"
  "$bary" train --dataset "$dataset" --out_dir "$out/untrained" --max_iters 0 --eval_iters 1 >"$out/log" 2>&1
fi

say "Before training the transformer writes:"
"$bary" generate "$out/untrained" --prompt "$prompt" --max_new_tokens 60

say "A model that sees one token only, 400 updates"
"$bary" train --dataset "$dataset" --out_dir "$out/token" --n_layer 0 --pos none --max_iters 400 --eval_interval 200

say "The one-block transformer (4 heads, width 128, window 128), 400 updates"
"$bary" train --dataset "$dataset" --out_dir "$out/block" --max_iters 400 --eval_interval 100

say "After training it writes:"
"$bary" generate "$out/block" --prompt "$prompt" --max_new_tokens 120

say "Perplexity on the held-out text, token-only first:"
"$bary" eval "$out/token"
"$bary" eval "$out/block"
say "The runs are in $out/token and $out/block. Go on: $bary generate $out/block --prompt \"KING:\""
