// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/target.h"

#include <algorithm>

#include "bary/base/error.h"
#include "bary/kernel/checks_test.h"
#include "bary/kernel/gemm.h"

namespace bary::kernel {
namespace {

TEST(Target, ScalarIsAlwaysThereAndLast) {
  std::vector<std::string> isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.back(), "scalar");
  for (const std::string& isa : isas) EXPECT_EQ(std::count(isas.begin(), isas.end(), isa), 1) << isa;
}

// Forcing must reach the kernels, not only the name: AVX-512 alone has panels of four vectors.
TEST(Target, ForcedOneIsTheOneThatRuns) {
  KeepIsa keep;
  for (const std::string& isa : available_isas()) {
    force_isa(isa);
    EXPECT_EQ(active_isa(), isa);
    EXPECT_EQ(panel_width(), isa == "avx512" ? 64 : 16) << isa;
  }
  force_isa("");
  EXPECT_EQ(active_isa(), available_isas().front());
}

TEST(Target, UnknownNameIsRefusedAndChangesNothing) {
  KeepIsa keep;
  force_isa("scalar");
  try {
    force_isa("mmx");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("'mmx'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("scalar"), std::string::npos) << e.what();
  }
  EXPECT_EQ(active_isa(), "scalar");
}

}  // namespace
}  // namespace bary::kernel
