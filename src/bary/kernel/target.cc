// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/target.h"

#include <cstdlib>

#include "bary/base/error.h"
#include "bary/kernel/targets.h"
#include "hwy/highway.h"

namespace bary::kernel {
namespace {

struct Isa {
  const char* name;
  int64_t target;
};
constexpr Isa kIsas[] = {
#if HWY_ARCH_X86
    {"avx512", HWY_AVX3},
    {"avx2", HWY_AVX2},
#elif HWY_ARCH_ARM
    {"neon", HWY_NEON},
#endif
    {"scalar", HWY_SCALAR | HWY_EMU128}};

int64_t supported() {
  static const int64_t targets = [] {
    hwy::SetSupportedTargetsForTest(0);
    return static_cast<int64_t>(hwy::SupportedTargets());
  }();
  return targets | HWY_SCALAR | HWY_EMU128;
}

}  // namespace

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const Isa& isa : kIsas)
    if ((supported() & HWY_TARGETS) & isa.target) names.push_back(isa.name);
  return names;
}

static std::string& forced() {
  static std::string name;
  return name;
}

std::string active_isa() { return forced().empty() ? available_isas().front() : forced(); }

void force_isa(const std::string& name) {
  int64_t targets = 0;
  if (!name.empty()) {
    std::string have;
    for (const std::string& isa : available_isas()) have += (have.empty() ? "" : ", ") + isa;
    for (const Isa& isa : kIsas)
      if (name == isa.name) targets = isa.target & HWY_TARGETS & supported();
    BARY_CHECK(targets != 0, "BARY_ISA: got '{}', but this machine and build have: {}; choose one of those", name,
               have);
  }
  forced() = name;
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void apply_isa_from_environment() {
  static const bool once = [] {
    const char* name = std::getenv("BARY_ISA");
    if (name && *name) force_isa(name);
    return true;
  }();
  (void)once;
}

}  // namespace bary::kernel
