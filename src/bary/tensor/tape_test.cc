// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/tape.h"

#include <thread>

#include "bary/base/error.h"
#include "bary/tensor/fused.h"
#include "bary/tensor/gradient_check_test.h"

namespace bary {
namespace {

TEST(Tape, WithoutOneNothingIsRecorded) {
  Tensor x = random_tensor({2, 3}, 1).require_grad();
  Tensor y = x * x;
  EXPECT_FALSE(y.needs_grad());
  Tape tape;
  Tensor z = random_tensor({2, 3}, 2) * 2.0f;
  EXPECT_FALSE(z.needs_grad());
  EXPECT_EQ(tape.size(), 0u);  // nobody in sight wants a gradient
  Tensor w = x * z;
  EXPECT_TRUE(w.needs_grad());
  EXPECT_EQ(tape.size(), 1u);
}

TEST(Tape, BackwardEmptiesItAndFreesOnTheWay) {
  Tensor x = random_tensor({2, 3}, 1).require_grad();
  Tape tape;
  std::weak_ptr<int> kept;
  Tensor y = x * 2.0f;
  {
    auto memory = std::make_shared<int>(1);
    kept = memory;
    record(
        y, [memory] {}, x);
  }
  EXPECT_FALSE(kept.expired());
  tape.backward(sum(y));
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_TRUE(kept.expired());
}

TEST(Tape, APullbackWithoutAGradientIsSkipped) {
  Tensor x = random_tensor({2, 3}, 1).require_grad();
  Tape tape;
  Tensor used = x * 2.0f, unused = x * 3.0f;
  bool ran = false;
  Tensor probe(Shape{2, 3});
  record(
      probe, [&ran] { ran = true; }, unused);
  tape.backward(sum(used));
  EXPECT_FALSE(ran);
  EXPECT_FALSE(unused.has_grad());
  for (float g : x.grad_vector()) EXPECT_EQ(g, 2);
}

TEST(Tape, SeedAndUsesAddUp) {
  Tensor x = Tensor::from({3}, Floats{1, 2, 3}).require_grad();
  Tape tape;
  Tensor y = x * x + x * 2.0f + x;
  tape.backward(sum(y), 0.5f);
  expect_same_bits(x.grad_vector(), {2.5f, 3.5f, 4.5f}, "x^2 + 3x");
}

TEST(Tape, TheInnerOneRecordsAndTheOuterComesBack) {
  Tensor x = Tensor::from({2}, Floats{1, 2}).require_grad();
  Tape outer;
  Tensor y = x * 3.0f;
  {
    Tape inner;
    EXPECT_EQ(Tape::active(), &inner);
    Tensor z = Tensor::from({2}, Floats{5, 7}).require_grad();
    inner.backward(sum(z * z));
    expect_same_bits(z.grad_vector(), {10, 14}, "inner");
    EXPECT_EQ(outer.size(), 1u);
  }
  EXPECT_EQ(Tape::active(), &outer);
  outer.backward(sum(y));
  expect_same_bits(x.grad_vector(), {3, 3}, "outer");
}

TEST(Tape, BelongsToItsThread) {
  Tape tape;
  std::thread([] { EXPECT_EQ(Tape::active(), nullptr); }).join();
}

TEST(Tape, LossMustBeOneNumberThatDependsOnSomething) {
  Tensor x = random_tensor({2, 3}, 1).require_grad(), constant = random_tensor({2, 3}, 1);
  Tape tape;
  EXPECT_THROW(tape.backward(x * 2.0f), Error);
  EXPECT_THROW(tape.backward(sum(constant)), Error);
  Parameters parameters(1);
  Tensor p = parameters.add("p", {1}, Role::norm, {});
  EXPECT_THROW(tape.backward(p), Error);  // this tape keeps no gradients of parameters
}

TEST(Tape, AnOperationWithoutAGradientSaysSo) {
  Tensor x = random_tensor({2, 3}, 1).require_grad();
  EXPECT_NO_THROW(refuse_gradient("argmax", x));
  Tape tape;
  EXPECT_NO_THROW(refuse_gradient("argmax", random_tensor({2, 3}, 1)));
  try {
    refuse_gradient("argmax", x);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("argmax has no gradient"), std::string::npos) << e.what();
  }
}

TEST(Tape, ParametersGradientsGoToItsBufferAndAddUp) {
  Parameters parameters(1);
  Tensor w = parameters.add("w", {2, 3}, Role::matrix, {Init::Kind::normal, 1});
  Tensor b = parameters.add("b", {2}, Role::bias, {Init::Kind::normal, 1});
  Tensor x = random_tensor({4, 3}, 1);
  Floats once(static_cast<size_t>(parameters.size()), 0.0f), twice = once;
  {
    Tape tape(once.data());
    tape.backward(sum(linear(x, w, b)));
  }
  for (int i = 0; i < 2; ++i) {
    Tape tape(twice.data());
    tape.backward(sum(linear(x, w, b)));
  }
  for (size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], 2 * once[i], 8 * kEps * std::fabs(once[i])) << i;
  EXPECT_EQ(once[6], 4);  // of a bias: one a row
  Tensor input = random_tensor({4, 3}, 1).require_grad();
  Tape tape;  // parameters' gradients are not wanted, the input's is
  tape.backward(sum(linear(input, w, b)));
  EXPECT_TRUE(input.has_grad());
  EXPECT_FALSE(w.has_grad());
}

// A frozen matrix with a free bias, and the other way round: nothing is lost because its neighbour is a constant.
// A buffer that holds nothing yet: nothing of it is read, and what gets no gradient ends as zero.
TEST(Tape, AnUndefinedBufferEndsAsAClearedOne) {
  const Init normal{Init::Kind::normal, 1};
  for (int order = 0; order < 4; ++order) {
    Parameters p(1);
    p.add("unused", {5}, Role::bias, normal);
    Tensor q = p.add("q", {3, 4}, Role::matrix, normal), v = p.add("v", {2, 4}, Role::matrix, normal);
    p.add("between", {7}, Role::bias, normal);
    Tensor table = p.add("table", {6, 4}, Role::matrix, normal), gain = p.add("gain", {4}, Role::bias, normal);
    p.add("last", {3}, Role::bias, normal);
    Tensor both = p.join(std::array{q, v});
    auto gradients = [&](float before, bool undefined) {
      Floats g(static_cast<size_t>(p.size()), before);
      Tape tape(g.data(), undefined ? p.size() : 0);
      const int32_t ids[] = {1, 4, 1};
      Tensor x = layer_norm(embedding(ids, 1, table), gain, {}, 1e-5f), loss;
      auto add = [&](const Tensor& y) { loss = loss.defined() ? loss + sum(y * y) : sum(y * y); };
      if (order & 1) add(linear(x, v));  // a part before or after its join, or the join alone
      add(linear(x, both));
      if (order & 2) add(linear(x, q));
      tape.backward(loss);
      return g;
    };
    expect_same_bits(gradients(NAN, true), gradients(0, false), fmt::format("order {}", order));
  }
}

TEST(Tape, AnUndefinedBufferIsClearedWhereNoParameterTookPart) {
  Floats g(5, NAN);
  Tensor x = Tensor::from({1}, Floats{2}).require_grad();
  {
    Tape tape(g.data(), 5);
    tape.backward(sum(x * x));
  }
  expect_same_bits(g, Floats(5, 0), "nothing came");
}

TEST(Tape, ABiasAloneCanLearn) {
  const std::vector<int32_t> targets{0, 1};
  auto gradient_of_bias = [&](auto loss) {
    Tensor b = random_tensor({4}, 3).require_grad();
    Tape tape;
    tape.backward(loss(b));
    return b.grad_vector();
  };
  Tensor x = random_tensor({2, 4}, 1), w = random_tensor({4, 4}, 2);
  Floats g = gradient_of_bias([&](const Tensor& b) { return sum(mlp(x, {w, b, w, {}}, Activation::gelu)); });
  EXPECT_NE(g[0], 0);
  g = gradient_of_bias([&](const Tensor& b) { return sum(mlp(x, {w, {}, w, b}, Activation::gelu)); });
  EXPECT_EQ(g[0], 2);
  g = gradient_of_bias([&](const Tensor& b) { return linear_cross_entropy(x, w, b, targets).loss; });
  EXPECT_NEAR(g[0] + g[1] + g[2] + g[3], 0, 4 * kEps);
  EXPECT_NE(g[0], 0);
}

TEST(Tape, PassGradientMovesCopiesOrAdds) {
  Tensor y = random_tensor({2, 3}, 1).require_grad(), to = random_tensor({2, 3}, 2).require_grad();
  auto fill = [](const Tensor& t, float v) {
    auto g = t.grad();
    for (int64_t r = 0; r < 2; ++r) std::fill_n(g.data + r * g.stride, 3, v);
  };
  fill(y, 2);
  const float* memory = y.cotangent();
  y.pass_gradient_to(to);
  EXPECT_EQ(to.cotangent(), memory);  // moved
  EXPECT_FALSE(y.has_grad());
  fill(y, 3);
  y.pass_gradient_to(to);
  expect_same_bits(to.grad_vector(), Floats(6, 5.0f), "added");
  Tensor nobody = random_tensor({2, 3}, 2);
  y.pass_gradient_to(nobody);
  EXPECT_FALSE(nobody.has_grad());

  Parameters parameters(1);
  Tensor w = parameters.add("w", {2, 3}, Role::matrix, {});
  Floats buffer(static_cast<size_t>(parameters.size()), 1.0f);
  {
    Tape tape(buffer.data());
    y.pass_gradient_to(w);  // rows of a parameter stand closer together than those of y
  }
  expect_same_bits({buffer.begin(), buffer.begin() + 6}, Floats(6, 4.0f), "into the flat buffer");
  Tape without;
  EXPECT_NO_THROW(y.pass_gradient_to(w));
}

}  // namespace
}  // namespace bary
