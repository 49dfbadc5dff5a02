// SPDX-License-Identifier: Apache-2.0
// Shapes, tensors and the memory under them.
#include "bary/tensor/tensor.h"

#include <thread>

#include "bary/base/error.h"
#include "bary/base/parallel.h"
#include "bary/tensor/attention.h"
#include "bary/tensor/fused.h"
#include "bary/tensor/gradient_check_test.h"

namespace bary {
namespace {

TEST(Shape, RowsChannelsAndText) {
  Shape s{2, 3, 4};
  EXPECT_EQ(s.rank(), 3);
  EXPECT_EQ(s[-1], 4);
  EXPECT_EQ(s.volume(), 24);
  EXPECT_EQ(s.rows(), 6);
  EXPECT_EQ(s.str(), "(2,3,4)");
  EXPECT_EQ(s.with_channels(7), (Shape{2, 3, 7}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_EQ((Shape{2, 0}).rows(), 0);
  EXPECT_EQ((Shape{0, 2}).rows(), 0);
  EXPECT_EQ(Shape().volume(), 1);
  EXPECT_THROW((Shape{2, -1}), Error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1}), Error);
}

TEST(Tensor, RowsWithoutThePadding) {
  for (int64_t C : {1, 15, 16, 17, 128, 130}) {
    Floats values = normals(3 * C, 1);
    Tensor t = Tensor::from({3, C}, values);
    EXPECT_EQ(t.stride() % 16, 0);
    EXPECT_NE(t.stride() % 128, 0) << "rows would share cache sets";
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
    expect_same_bits(t.to_vector(), values, "values");
    EXPECT_EQ(t.row(2)[C - 1], values.back());
  }
  for (float v : Tensor::zeros({2, 5}).to_vector()) EXPECT_EQ(v, 0);
  EXPECT_THROW(Tensor::from({2, 2}, Floats{1, 2, 3}), Error);
  EXPECT_THROW(Tensor({2}).item(), Error);
  EXPECT_EQ(Tensor::from({1, 1}, Floats{4}).item(), 4);
  EXPECT_FALSE(Tensor().defined());
  EXPECT_FALSE(Tensor().needs_grad());
  EXPECT_FALSE(Tensor().has_grad());
}

TEST(Tensor, CopiesShareMemory) {
  Tensor a = Tensor::zeros({2, 2}), b = a;
  b.data()[0] = 3;
  EXPECT_EQ(a.data()[0], 3);
  EXPECT_EQ(a.id(), b.id());
  b.require_grad();
  EXPECT_TRUE(a.needs_grad());
}

TEST(Tensor, FirstContributionWritesAndLaterOnesAdd) {
  Tensor x({2, 3});
  EXPECT_FALSE(static_cast<bool>(x.grad()));
  x.require_grad();
  EXPECT_FALSE(x.has_grad());
  EXPECT_THROW(x.grad_vector(), Error);
  EXPECT_FALSE(x.grad().accumulate);
  EXPECT_TRUE(x.grad().accumulate);
  GradientSlot slot{x.grad().data, x.stride(), false};
  EXPECT_TRUE(slot.cleared(2).accumulate);
  expect_same_bits(x.grad_vector(), Floats(6, 0.0f), "cleared");
}

TEST(Buffer, AlignedReusedAndMoved) {
  for (int64_t n : {0, 1, 16, 17, 128, 129, 1000, 600000}) {
    Buffer b(n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % 64, 0u) << n;
    EXPECT_EQ(b.size(), n);
    for (int64_t i = 0; i < n; ++i) b.data()[i] = 1;
  }
  const float* first;
  {
    Buffer b(5000);
    first = b.data();
  }
  Buffer again(4990);
  EXPECT_EQ(again.data(), first);  // a little shorter fits the same block
  Buffer moved(std::move(again));
  EXPECT_EQ(moved.data(), first);
  Buffer other(77);
  other = std::move(moved);
  EXPECT_EQ(other.data(), first);
}

TEST(Buffer, FreedByAnotherThreadItComesHome) {
  const float* address;
  {
    Buffer b(12345);
    address = b.data();
    std::thread([moved = std::move(b)] {}).join();
  }
  const int64_t before = pooled_floats();
  Buffer again(12345);
  EXPECT_EQ(again.data(), address);
  EXPECT_EQ(pooled_floats(), before);
}

TEST(Buffer, OutlivesTheThreadThatMadeIt) {
  const int64_t before = pooled_floats(), large = int64_t{1} << 20;
  {
    Buffer kept;
    std::thread([&] {
      kept = Buffer(large);
      Buffer gone(large);
    }).join();
    kept.data()[large - 1] = 2;
    EXPECT_EQ(pooled_floats(), before + large);
  }
  EXPECT_EQ(pooled_floats(), before);
}

// Small blocks stay with the pool, which the next thread takes over.
TEST(Buffer, ThreadsThatComeAndGoDoNotGrowThePools) {
  auto one = [] { std::thread([] { const Buffer a(50000), b(300); }).join(); };
  one();
  const int64_t after_one = pooled_floats();
  for (int i = 0; i < 5; ++i) one();
  EXPECT_EQ(pooled_floats(), after_one);
}

// A training step asks for the same sizes every time: once warm, nothing comes from the system. With one thread,
// because which of several threads is the first to need a block is chance.
TEST(Buffer, RoundsOfTrainingDoNotGrowThePool) {
  set_threads(1);
  Parameters p(1);
  const int64_t C = 24;
  Tensor table = p.add("table", {50, C}, Role::embedding, {Init::Kind::normal, 1});
  Tensor qkv = p.add("qkv", {3 * C, C}, Role::matrix, {Init::Kind::normal, 0.1});
  Tensor up = p.add("up", {4 * C, C}, Role::matrix, {Init::Kind::normal, 0.1});
  Tensor down = p.add("down", {C, 4 * C}, Role::matrix, {Init::Kind::normal, 0.1});
  Tensor norm = p.add("norm", {C}, Role::norm, {Init::Kind::constant, 1});
  Floats gradients(static_cast<size_t>(p.size()), 0.0f);
  std::vector<int32_t> ids(2 * 20), next(2 * 20);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>(i * 7 % 50), next[i] = static_cast<int32_t>(i * 11 % 50);
  int64_t warm = 0;
  Floats first;
  for (int round = 0; round < 200; ++round) {
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    Tape tape(gradients.data());
    Tensor x = embedding(ids, 2, table);
    AttentionOptions o;
    o.heads = 3;
    x = x + attention(linear(layer_norm(x, norm, {}), qkv), o);
    x = mlp(layer_norm(x, norm, {}), {up, {}, down, {}}, Activation::gelu, x);
    tape.backward(linear_cross_entropy(x, table, {}, next, 1.0f / 40).loss);
    if (round == 0) first = gradients;
    if (round == 1) warm = pooled_floats();
  }
  EXPECT_EQ(pooled_floats(), warm);
  expect_same_bits(gradients, first, "the last round's gradients and the first's");  // reused memory is never read
  set_threads(0);
}

TEST(Shape, SizesThatCouldNotBeCountedAreRefused) {
  EXPECT_THROW((Shape{1 << 20, 1 << 22, 1 << 22}), Error);
  EXPECT_THROW((Shape{int64_t{1} << 40, 0, int64_t{1} << 40}), Error);  // whatever order they are multiplied in
  EXPECT_THROW((Shape{1 << 20, 4}.with_channels(int64_t{1} << 50)), Error);
  EXPECT_THROW(Shape{}.with_channels(3), Error);
  EXPECT_THROW(Shape{2}.with_channels(-1), Error);
}

TEST(Buffer, SizesThatNothingHoldsAreRefused) {
  EXPECT_THROW(Buffer(-1), Error);
  EXPECT_THROW(Buffer(int64_t{1} << 62), Error);
  EXPECT_NO_THROW(Buffer(0));
}

}  // namespace
}  // namespace bary
