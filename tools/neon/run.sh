#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [FILTER]   kernels compiled for 64-bit ARM and their tests run there, under emulation: NEON against the plain baseline
# and against the committed hashes. On Debian 12, as root or with sudo; installs the cross compiler, qemu-user and two ARM
# libraries where they are missing. Slow: minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
filter=${1:-*}
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
lib=/usr/lib/aarch64-linux-gnu

if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64 >/dev/null || [ ! -e $lib/libhwy.so.1 ]; then
  echo "neon: installing g++-aarch64-linux-gnu qemu-user googletest libhwy-dev, and libhwy1 libfmt9 for arm64" >&2
  $sudo dpkg --add-architecture arm64
  $sudo apt-get update -q >/dev/null
  $sudo apt-get install -qq -y --no-install-recommends g++-aarch64-linux-gnu qemu-user googletest libhwy-dev libfmt-dev \
    libhwy1:arm64 libfmt9:arm64 >/dev/null
fi

out=build/neon
rm -rf $out  # a changed header would go unseen
mkdir -p $out
sources=(src/bary/base/{parallel,portable_math,random,sha256}.cc src/bary/kernel/*.cc /usr/src/googletest/googletest/src/{gtest-all,gtest_main}.cc)
# Highway's NEON functions are compiled with the AES extension; g++ refuses to inline them into code without it.
flags="-march=armv8-a+crypto -std=c++20 -O2 -ffp-contract=off -Isrc -I/usr/src/googletest/googletest -I/usr/src/googletest/googletest/include -DHWY_SHARED_DEFINE -DFMT_SHARED"
compile() {
  local object=$out/$(basename "$1" .cc).o
  aarch64-linux-gnu-g++ $flags -c "$1" -o "$object"
}
export out flags
export -f compile
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} bash -c 'compile {}'
aarch64-linux-gnu-g++ $out/*.o $lib/libhwy.so.1 $lib/libfmt.so.9 -lpthread -o $out/kernel_test
qemu-aarch64 $out/kernel_test --gtest_filter="$filter" --gtest_brief=1
