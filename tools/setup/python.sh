#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a Python that has the packages some tests compare with (Hugging Face's tokenizers and safetensors).
# Made once under build/venv, outside the system's Python. Without PyPI it says so and prints nothing: those tests then
# print what they skip.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/venv
packages=(tokenizers safetensors numpy)

works() { "$1" -c 'import tokenizers, safetensors, numpy' >/dev/null 2>&1; }

if [ -n "${BARY_PYTHON:-}" ] && works "$BARY_PYTHON"; then echo "$BARY_PYTHON"; exit 0; fi
if works "$venv/bin/python"; then echo "$venv/bin/python"; exit 0; fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "setup: making build/venv with ${packages[*]} from PyPI" >&2
rm -rf "$venv"
mkdir -p "$root/build"
for python in python3 /usr/bin/python3; do
  if "$python" -m venv "$venv" >"$log" 2>&1 && "$venv/bin/pip" install -q "${packages[@]}" >>"$log" 2>&1 &&
    works "$venv/bin/python"; then
    echo "$venv/bin/python"
    exit 0
  fi
done
tail -n 3 "$log" >&2
echo "setup: no Python with ${packages[*]} could be made; tests that compare with them are skipped" >&2
