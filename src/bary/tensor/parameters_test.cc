// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/parameters.h"

#include <array>
#include <thread>

#include "bary/base/error.h"
#include "bary/base/parallel.h"
#include "bary/kernel/gemm.h"
#include "bary/tensor/fused.h"
#include "bary/tensor/gradient_check_test.h"

namespace bary {
namespace {

const Init kNormal{Init::Kind::normal, 0.5}, kUniform{Init::Kind::uniform, 0.25};

TEST(Parameters, NamesShapesAndCount) {
  Parameters p(1);
  p.add("a.weight", {5, 3}, Role::matrix, kNormal);
  p.add("a.bias", {5}, Role::bias, {Init::Kind::constant, 2});
  EXPECT_EQ(p.count(), 20);
  EXPECT_GE(p.size(), 20);
  ASSERT_NE(p.find("a.bias"), nullptr);
  EXPECT_EQ(p.find("a.bias")->role, Role::bias);
  EXPECT_EQ(p.find("b"), nullptr);
  for (float v : p.values_of(*p.find("a.bias"))) EXPECT_EQ(v, 2);
  EXPECT_THROW(p.add("a.bias", {5}, Role::bias, kNormal), Error);
}

TEST(Parameters, HandlesFollowTheBufferWhenItGrows) {
  Parameters p(1);
  Tensor first = p.add("first", {3, 4}, Role::matrix, kNormal), joined = p.join(std::array{first});
  Floats before = first.to_vector();
  for (int i = 0; i < 50; ++i) p.add("more" + std::to_string(i), {100, 30}, Role::matrix, kNormal);
  expect_same_bits(first.to_vector(), before, "values");
  EXPECT_EQ(first.data(), p.values() + p.find("first")->offset);
  EXPECT_EQ(joined.data(), first.data());
  first.data()[0] = 9;
  EXPECT_EQ(p.values_of(*p.find("first"))[0], 9);
}

TEST(Parameters, InitialValuesDependOnSeedAndNameAlone) {
  Parameters alone(7), among(7), other(8);
  set_threads(1);
  Tensor a = alone.add("blocks.1.weight", {300, 100}, Role::matrix, kNormal);
  set_threads(3);
  among.add("blocks.0.weight", {30, 10}, Role::matrix, kUniform);
  Tensor b = among.add("blocks.1.weight", {300, 100}, Role::matrix, kNormal);
  set_threads(0);
  expect_same_bits(a.to_vector(), b.to_vector(), "what else the model has");
  EXPECT_NE(a.to_vector(), other.add("blocks.1.weight", {300, 100}, Role::matrix, kNormal).to_vector());
  EXPECT_NE(a.to_vector(), alone.add("blocks.2.weight", {300, 100}, Role::matrix, kNormal).to_vector());
}

TEST(Parameters, InitialDistributions) {
  Parameters p(3);
  Floats n = p.add("n", {200, 200}, Role::matrix, kNormal).to_vector(),
         u = p.add("u", {200, 200}, Role::matrix, kUniform).to_vector();
  auto moments = [](const Floats& x) {
    double mean = 0, square = 0;
    for (float v : x) mean += v / 40000.0, square += static_cast<double>(v) * static_cast<double>(v) / 40000;
    return std::array<double, 2>{mean, std::sqrt(square - mean * mean)};
  };
  EXPECT_NEAR(moments(n)[0], 0, 5 * 0.5 / 200);  // five standard errors
  EXPECT_NEAR(moments(n)[1], 0.5, 5 * 0.5 / std::sqrt(80000));
  EXPECT_NEAR(moments(u)[0], 0, 5 * 0.25 / std::sqrt(3) / 200);
  EXPECT_NEAR(moments(u)[1], 0.25 / std::sqrt(3), 5 * 0.25 / std::sqrt(3) / std::sqrt(80000));
  for (float v : u) ASSERT_LE(std::fabs(v), 0.25f);
}

TEST(Parameters, JoinedPartsAreOneMatrixInTheSameMemory) {
  for (auto [n1, n2, k] : {std::array<int64_t, 3>{16, 16, 16}, {20, 5, 7}, {3, 1, 1}}) {
    Parameters p(1);
    Tensor odd = p.add("odd", {3}, Role::bias, kNormal);
    Tensor q = p.add("q", {n1, k}, Role::matrix, kNormal), v = p.add("v", {n2, k}, Role::matrix, kNormal);
    Tensor bq = p.add("bq", {n1}, Role::bias, kNormal), bv = p.add("bv", {n2}, Role::bias, kNormal);
    Tensor w = p.join(std::array{q, v}), b = p.join(std::array{bq, bv});
    EXPECT_EQ(w.shape(), (Shape{n1 + n2, k}));
    EXPECT_EQ(b.shape(), (Shape{n1 + n2}));
    EXPECT_EQ(p.count(), 3 + (n1 + n2) * (k + 1));  // a join adds nothing to learn
    Tensor x = random_tensor({4, k}, 1);
    auto run = [&](auto forward) {
      Floats g(static_cast<size_t>(p.size()), 0.0f);
      Tape tape(g.data());
      Tensor y = forward();
      Floats out = y.to_vector();
      tape.backward(sum(y * random_tensor(y.shape(), 5)));
      kernel::append(out, g);
      return out;
    };
    Floats together = run([&] { return linear(x, w, b); });
    Floats apart = run([&] { return concat(std::array{linear(x, q, bq), linear(x, v, bv)}); });
    expect_same_bits(together, apart, "values and gradients");
    EXPECT_THROW(p.join(std::array{v, q}), Error);
    EXPECT_THROW(p.join(std::array{q, v, bq}), Error);
    EXPECT_THROW(p.join(std::array{odd, bq}), Error);
    EXPECT_THROW(p.join(std::array{x}), Error);
    EXPECT_THROW(p.join({}), Error);
  }
}

TEST(Parameters, PackedCopiesAreMadeAgainWhenValuesChange) {
  Parameters p(1);
  Tensor w = p.add("w", {70, 33}, Role::matrix, kNormal);
  Tensor x = random_tensor({5, 33}, 1);
  Floats before = linear(x, w).to_vector();
  const float* memory = p.packed(w, true);
  for (int64_t i = 0; i < 70 * 33; ++i) w.data()[i] *= 2;
  p.changed();
  Floats after = linear(x, w).to_vector();
  EXPECT_EQ(p.packed(w, true), memory);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], 2 * before[i]);
}

TEST(Parameters, PackedIsTheKernelsPackingAtEverySize) {
  kernel::KeepIsa keep;
  for (const std::string& isa : kernel::available_isas()) {
    kernel::force_isa(isa);
    Parameters p(1);
    for (auto [n, k] : {std::array<int64_t, 2>{1, 1}, {70, 33}, {130, 300}, {1000, 600}}) {
      Tensor w = p.add("w" + std::to_string(n), {n, k}, Role::matrix, kNormal);
      for (bool changed : {false, true}) {
        if (changed) p.changed();  // packs in parallel what was packed by one thread
        Floats a(static_cast<size_t>(kernel::packed_size(n, k))), b(static_cast<size_t>(kernel::packed_size(k, n)));
        kernel::pack_transposed(w.data(), n, k, k, a.data());
        kernel::pack(w.data(), n, k, k, b.data());
        expect_same_bits({p.packed(w, true), p.packed(w, true) + a.size()}, a, isa);
        expect_same_bits({p.packed(w, false), p.packed(w, false) + b.size()}, b, isa);
      }
    }
  }
}

// One thread outside any loop and one whose loop holds the pool meet a matrix that nobody has packed yet.
TEST(Parameters, FirstUseFromSeveralThreads) {
  set_threads(3);
  for (int round = 0; round < 20; ++round) {
    Parameters p(1);
    Tensor w = p.add("w", {300, 200}, Role::matrix, kNormal);
    std::array<const float*, 4> seen{};
    std::thread other(
        [&] { parallel_for(3, 1, [&](int64_t b, int64_t) { seen[static_cast<size_t>(b)] = p.packed(w, false); }); });
    seen[3] = p.packed(w, false);
    other.join();
    for (const float* pointer : seen) EXPECT_EQ(pointer, seen[3]);
  }
  set_threads(0);
}

}  // namespace
}  // namespace bary
