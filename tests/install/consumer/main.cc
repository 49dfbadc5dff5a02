// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "bary/base/error.h"
#include "bary/base/portable_math.h"

int main() try {
  std::printf("e = %.15g\n", bary::portable::exp(1.0));
  bary::fail("consumer: {} came, {} was expected", 1, 2);
} catch (const bary::Error& error) {
  std::printf("%s\n", error.what());
}
