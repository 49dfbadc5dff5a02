// SPDX-License-Identifier: Apache-2.0
// Generation reads earlier keys and values from a cache: the same numbers as one pass over the whole text, bit for bit.
#include <cstring>

#include "bary/base/error.h"
#include "bary/tensor/attention_formula_test.h"

namespace bary {
namespace {

TEST(KeyValues, ChunksOfAnySizeGiveTheBitsOfTheFullPass) {
  const AttentionShape s{2, 300, 4, 2, 8};
  RotaryTable table(s.T, s.D, kTheta);
  const Floats values = normals(s.B * s.T * s.width(), 1);
  const Tensor x = Tensor::from({s.B, s.T, s.width()}, values);
  for (int variant = 0; variant < 4; ++variant) {
    AttentionOptions o;
    o.heads = s.H;
    o.kv_heads = s.G;
    if (variant == 1) o.rotary = &table;
    if (variant == 2) o.alibi = true;
    if (variant == 3) o.mask = Mask::window, o.window = 70, o.rotary = &table;
    const Tensor whole = attention(x, o);
    for (int64_t chunk : {1, 7, 64, 300}) {
      KeyValues cache(s.B, s.G, s.D, s.T);
      o.cache = &cache;
      for (int64_t t = 0; t < s.T; t += chunk) {
        const int64_t n = std::min(chunk, s.T - t);
        Tensor part({s.B, n, s.width()});
        for (int64_t r = 0; r < s.B * n; ++r) std::copy_n(x.row(r / n * s.T + t + r % n), s.width(), part.row(r));
        Tensor y = attention(part, o);
        ASSERT_EQ(cache.length, t + n);
        for (int64_t r = 0; r < s.B * n; ++r) {
          const float *got = y.row(r), *want = whole.row(r / n * s.T + t + r % n);
          expect_same_bits({got, got + s.H * s.D}, {want, want + s.H * s.D},
                           fmt::format("variant {} chunk {} position {}", variant, chunk, t + r % n));
        }
        if (HasFailure()) return;
      }
    }
  }
}

TEST(KeyValues, AWatcherSeesTheRowsOfTheFullPattern) {
  const AttentionShape s{2, 40, 4, 2, 8};
  RotaryTable table(s.T, s.D, kTheta);
  const Tensor x = Tensor::from({s.B, s.T, s.width()}, normals(s.B * s.T * s.width(), 1));
  AttentionOptions o;
  o.heads = s.H, o.kv_heads = s.G, o.rotary = &table;
  Tensor pattern;
  o.look = [&](const Tensor& p) { pattern = p; };
  attention(x, o);
  const Tensor whole = pattern;
  KeyValues cache(s.B, s.G, s.D, s.T);
  o.cache = &cache;
  for (int64_t t = 0; t < s.T; t += 8) {
    Tensor part({s.B, 8, s.width()});
    for (int64_t r = 0; r < s.B * 8; ++r) std::copy_n(x.row(r / 8 * s.T + t + r % 8), s.width(), part.row(r));
    attention(part, o);
    ASSERT_EQ(pattern.shape(), (Shape{s.B, s.H, 8, t + 8}));
    for (int64_t r = 0; r < s.B * s.H * 8; ++r) {
      const float *got = pattern.row(r), *want = whole.row(r / 8 * s.T + t + r % 8);
      expect_same_bits({got, got + t + 8}, {want, want + t + 8}, fmt::format("row {} at {}", r, t));
    }
  }
  EXPECT_THROW(attention_by_definition(x, o), Error) << "an edit needs the whole text";
}

TEST(KeyValues, LimitsAreNamed) {
  Tensor x({1, 3, 12});
  KeyValues cache(1, 1, 4, 4), wider(1, 1, 5, 4), more(2, 1, 4, 4);
  AttentionOptions o;
  o.cache = &wider;
  EXPECT_THROW(attention(x, o), Error);
  o.cache = &more;
  EXPECT_THROW(attention(x, o), Error);
  o.cache = &cache;
  o.mask = Mask::full;
  EXPECT_THROW(attention(x, o), Error);
  o.mask = Mask::causal;
  {
    Tape tape;
    Tensor learned = random_tensor({1, 3, 12}, 1).require_grad();
    EXPECT_THROW(attention(learned, o), Error);
  }
  attention(Tensor::zeros({1, 3, 12}), o);
  try {
    attention(Tensor::zeros({1, 3, 12}), o);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("3 positions held and 3 more, the cache has room for 4"), std::string::npos)
        << e.what();
  }
  EXPECT_EQ(cache.length, 3);
}

TEST(KeyValues, CapacitiesThatNothingHoldsAreRefused) {
  EXPECT_THROW(KeyValues(1, 1, 32, INT64_MAX), Error);
  EXPECT_THROW(KeyValues(1, 1, 32, int64_t{1} << 57), Error);
  EXPECT_THROW(KeyValues(1, 1, 32, -1), Error);
  EXPECT_THROW(KeyValues(INT64_MAX, 2, 8, 4), Error);
}

TEST(KeyValues, APrefixComesWholeAndFirst) {  // its own rows see all of it
  const AttentionShape s{1, 12, 2, 2, 8};
  const Tensor x = Tensor::from({s.B, s.T, s.width()}, normals(s.B * s.T * s.width(), 1));
  auto rows = [&](int64_t from, int64_t n) {
    Tensor part({1, n, s.width()});
    for (int64_t r = 0; r < n; ++r) std::copy_n(x.row(from + r), s.width(), part.row(r));
    return part;
  };
  AttentionOptions o;
  o.heads = s.H, o.kv_heads = s.G, o.prefix = {8};
  const Tensor whole = attention(x, o);
  KeyValues cache(s.B, s.G, s.D, s.T);
  o.cache = &cache;
  EXPECT_THROW(attention(rows(0, 4), o), Error);
  EXPECT_EQ(cache.length, 0);
  const Tensor first = attention(rows(0, 8), o), then = attention(rows(8, 4), o);
  for (int64_t t = 0; t < 12; ++t) {
    const float* y = t < 8 ? first.row(t) : then.row(t - 8);
    EXPECT_EQ(0, std::memcmp(y, whole.row(t), static_cast<size_t>(s.H * s.D) * 4)) << t;
  }
  o.prefix = {14};
  EXPECT_THROW(attention(rows(0, 0), o), Error);
}

}  // namespace
}  // namespace bary
