#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh PART...   installs with apt what packages.txt lists for the parts (build, test, check) and is missing.
# With everything there it asks no network and changes nothing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

wanted=()
for part in "${@:-build}"; do
  grep -q "^$part " "$here/packages.txt" || { echo "setup: no part '$part'; use build, test or check" >&2; exit 2; }
  while read -r _ package; do wanted+=("$package"); done < <(grep "^$part " "$here/packages.txt")
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  # Another system may have the same libraries under other names: CMake is the judge.
  echo "setup: no apt here; bary is built with these Debian 12 packages or their likes: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: missing ${missing[*]}; become root and run: apt-get install ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "setup: installing with apt: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1; }
if ! { run apt-get update && run apt-get install -y --no-install-recommends "${missing[@]}"; }; then
  tail -n 20 "$log" >&2
  echo "setup: apt could not install ${missing[*]}; see above, or install them by hand" >&2
  exit 1
fi
