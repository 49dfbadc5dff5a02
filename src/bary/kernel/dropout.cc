// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/dropout.h"

#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/dropout.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before these
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void DropoutRow(const float* x, float* y, int64_t n, uint32_t key, uint32_t first, uint32_t threshold, float scale) {
  const hn::ScalableTag<float> floats;
  const hn::RebindToUnsigned<decltype(floats)> ints;
  const auto lanes = static_cast<int64_t>(hn::Lanes(floats));
  const auto step = hn::Set(ints, static_cast<uint32_t>(lanes) * kDropoutColumn);
  auto column = hn::Mul(hn::Iota(ints, first), hn::Set(ints, kDropoutColumn));
  const auto row = hn::Set(ints, key), least = hn::Set(ints, threshold);
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes, column = hn::Add(column, step)) {
    auto h = hn::Xor(row, column);
    h = hn::Mul(hn::Xor(h, hn::ShiftRight<16>(h)), hn::Set(ints, kDropoutMix[0]));
    h = hn::Mul(hn::Xor(h, hn::ShiftRight<13>(h)), hn::Set(ints, kDropoutMix[1]));
    h = hn::Xor(h, hn::ShiftRight<16>(h));
    const auto kept = hn::RebindMask(floats, hn::Eq(hn::Max(h, least), h));
    hn::StoreU(hn::IfThenElseZero(kept, hn::Mul(hn::LoadU(floats, x + c), hn::Set(floats, scale))), floats, y + c);
  }
  for (; c < n; ++c) y[c] = dropout_keeps(key, first + static_cast<uint32_t>(c), threshold) ? x[c] * scale : 0.0f;
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(DropoutRow);

void dropout_row(const float* x, float* y, int64_t n, uint32_t row_key, uint32_t first, float p) {
  HWY_DYNAMIC_DISPATCH(DropoutRow)(x, y, n, row_key, first, dropout_threshold(p), 1.0f / (1.0f - p));
}

}  // namespace bary::kernel
#endif
