#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
if [ -z "$BARY_PYTHON" ] || ! "$BARY_PYTHON" -c 'import safetensors, numpy' 2>/dev/null; then
  echo "SKIPPED: set BARY_PYTHON to a Python that has safetensors and numpy"
  exit 77
fi
exec "$BARY_PYTHON" "$(dirname "$0")/safetensors_package.py" "$1"
