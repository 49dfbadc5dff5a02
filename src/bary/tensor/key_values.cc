// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bary/kernel/attention.h"
#include "bary/tensor/attention.h"

namespace bary {

KeyValues::KeyValues(int64_t B_, int64_t heads_, int64_t D_, int64_t capacity_)
    : B(B_), heads(heads_), D(D_), capacity(capacity_), value_stride(padded_stride(D_)) {
  const double numbers = static_cast<double>(B) * static_cast<double>(heads) * static_cast<double>(capacity) *
                         static_cast<double>(value_stride);
  BARY_CHECK(B >= 0 && heads >= 0 && D >= 0 && capacity >= 0 && numbers <= 0x1p44,
             "keys and values of {} x {} heads of {} for {} positions are asked for; nothing holds so many", B, heads,
             D, capacity);
  for (int64_t i = 0; i < B * heads; ++i) {
    keys.emplace_back(kernel::key_panel_size(capacity, D));
    values.emplace_back(capacity * value_stride);
  }
}

namespace {

Buffer copy_of(const Buffer& from, int64_t used) {
  Buffer to(from.size());
  std::copy_n(from.data(), used, to.data());
  return to;
}

}  // namespace

void KeyValues::reorder(const std::vector<int64_t>& from) {
  if (B > 0 && static_cast<int64_t>(from.size()) == B && std::is_sorted(from.begin(), from.end()) &&
      std::adjacent_find(from.begin(), from.end()) == from.end() && from.front() == 0 && from.back() == B - 1)
    return;  // everyone goes on from itself
  std::vector<int64_t> users(static_cast<size_t>(B), 0);
  for (int64_t b : from) {
    BARY_CHECK(b >= 0 && b < B, "reorder: sequence {} of a cache of {}", b, B);
    ++users[static_cast<size_t>(b)];
  }
  const int64_t used_keys = kernel::key_panel_size(length, D), used_values = length * value_stride;
  std::vector<Buffer> new_keys, new_values;
  for (int64_t b : from) {
    const bool last_user = --users[static_cast<size_t>(b)] == 0;  // takes the buffer, the others copy it
    for (int64_t h = 0; h < heads; ++h) {
      const auto i = static_cast<size_t>(b * heads + h);
      new_keys.push_back(last_user ? std::move(keys[i]) : copy_of(keys[i], used_keys));
      new_values.push_back(last_user ? std::move(values[i]) : copy_of(values[i], used_values));
    }
  }
  keys = std::move(new_keys), values = std::move(new_values);
  B = static_cast<int64_t>(from.size());
}

}  // namespace bary
