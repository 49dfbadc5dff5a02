// SPDX-License-Identifier: Apache-2.0
#include "bary/nn/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bary/base/error.h"
#include "bary/base/random.h"
#include "bary/tensor/ops.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

using Floats = std::vector<float>;
constexpr Cell kCells[] = {Cell::rnn, Cell::lstm, Cell::gru};

Tensor random_tensor(Shape shape, uint64_t seed) {
  RandomStream random(seed, Purpose::test);
  Floats v(static_cast<size_t>(shape.volume()));
  for (float& x : v) x = static_cast<float>(random.normal());
  return Tensor::from(shape, v);
}

RecurrentStackConfig stack_of(Cell cell, int64_t n_layer, double dropout = 0) {
  RecurrentStackConfig c;
  c.cell = cell, c.channels = 6, c.hidden = 18, c.n_layer = n_layer, c.dropout = dropout;
  return c;
}

TEST(RecurrentLayer, ParametersHavePyTorchsNamesShapesAndSpread) {
  for (Cell cell : kCells) {
    const int64_t G = kernel::gates_of(cell), C = 30, H = 49;
    Parameters p(3);
    RecurrentLayer layer(Scope{&p, "encoder", ""}, cell, C, H);
    const std::vector<std::pair<std::string, Shape>> want{{"encoder.weight_ih", {G * H, C}},
                                                          {"encoder.weight_hh", {G * H, H}},
                                                          {"encoder.bias_ih", {G * H}},
                                                          {"encoder.bias_hh", {G * H}}};
    ASSERT_EQ(p.list().size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(p.list()[i].name, want[i].first);
      EXPECT_EQ(p.list()[i].shape, want[i].second);
      EXPECT_EQ(p.list()[i].role, i < 2 ? Role::matrix : Role::bias);
      const auto values = p.values_of(p.list()[i]);
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      const float bound = 1.0f / 7;  // 1/sqrt(49), which many draws come near on both sides
      EXPECT_GE(*least, -bound);
      EXPECT_LE(*most, bound);
      EXPECT_LT(*least, -0.8f * bound);
      EXPECT_GT(*most, 0.8f * bound);
    }
  }
}

TEST(RecurrentLayer, IsTheOperationOnItsWeights) {
  for (Cell cell : kCells) {
    Parameters p(3);
    RecurrentLayer layer(Scope{&p, "", ""}, cell, 6, 18);
    const std::vector<int64_t> lengths{4, 2};
    Tensor x = random_tensor({2, 4, 6}, 1);
    RecurrentState first{random_tensor({2, 18}, 2), {}};
    RecurrentOptions o;  // names an lstm: the layer knows better
    o.lengths = lengths;
    const RecurrentOutput got = layer(x, first, o);
    o.cell = cell;
    const RecurrentOutput want = recurrent(x, layer.weights, first, o);
    EXPECT_EQ(got.y.to_vector(), want.y.to_vector());
    EXPECT_EQ(got.last.h.to_vector(), want.last.h.to_vector());
    EXPECT_EQ(layer(x).y.shape(), (Shape{2, 4, 18}));
  }
}

TEST(RecurrentStack, IsItsLayersOneAfterAnother) {
  for (Cell cell : kCells) {
    Parameters p(3);
    RecurrentStack stack(Scope{&p, "rnn", ""}, stack_of(cell, 3));
    EXPECT_TRUE(p.find("rnn.weight_ih_l0") && p.find("rnn.weight_hh_l1") && p.find("rnn.bias_hh_l2"));
    EXPECT_EQ(p.find("rnn.weight_ih_l0")->shape, (Shape{kernel::gates_of(cell) * 18, 6}));
    EXPECT_EQ(p.find("rnn.weight_ih_l2")->shape, (Shape{kernel::gates_of(cell) * 18, 18}));
    const std::vector<int64_t> lengths{5, 3};
    RecurrentOptions o;
    o.lengths = lengths;
    Tensor x = random_tensor({2, 5, 6}, 1);
    RecurrentStates first;
    for (uint64_t i = 0; i < 3; ++i)
      first.layers.push_back(
          {random_tensor({2, 18}, 10 + i), cell == Cell::lstm ? random_tensor({2, 18}, 20 + i) : Tensor()});
    const RecurrentStackOutput got = stack(x, first, Pass{}, o);
    Tensor y = x;
    for (size_t i = 0; i < 3; ++i) {
      const RecurrentOutput r = stack.layers[i](y, first.layers[i], o);
      EXPECT_EQ(got.last.layers[i].h.to_vector(), r.last.h.to_vector());
      if (cell == Cell::lstm) {
        EXPECT_EQ(got.last.layers[i].c.to_vector(), r.last.c.to_vector());
      }
      y = r.y;
    }
    EXPECT_EQ(got.y.to_vector(), y.to_vector());
  }
}

TEST(RecurrentStack, GoesOnFromItsLastStates) {
  for (Cell cell : kCells) {
    Parameters p(3);
    RecurrentStack stack(Scope{&p, "rnn", ""}, stack_of(cell, 2, 0.5));
    Tensor x = random_tensor({1, 6, 6}, 1);
    const Floats whole = stack(x, {}, Pass{}).y.to_vector();
    RecurrentStates states;
    Floats steps;
    for (int64_t t = 0; t < 6; ++t) {  // as when generating: one token at a time
      const RecurrentStackOutput out =
          stack(Tensor::from({1, 1, 6}, {x.row(t), static_cast<size_t>(6)}), states, Pass{});
      states = out.last;
      const Floats y = out.y.to_vector();
      steps.insert(steps.end(), y.begin(), y.end());
    }
    EXPECT_EQ(steps, whole);
  }
}

TEST(RecurrentStack, DropsBetweenItsLayersOnly) {
  Parameters p(3);
  const RecurrentStackConfig config = stack_of(Cell::gru, 2, 0.5);
  RecurrentStack stack(Scope{&p, "rnn", ""}, config);
  Tensor x = random_tensor({3, 5, 6}, 1);
  Pass pass;
  pass.training = true, pass.seed = 1, pass.step = 4, pass.sequence = 8;
  const Tensor below = stack.layers[0](x).y;
  const kernel::DropoutSite site = drop_site(0.5, pass, 0, DropSite::mixer);
  const Floats want = stack.layers[1](dropout(below, site, {8, 0})).y.to_vector();
  EXPECT_EQ(stack(x, {}, pass).y.to_vector(), want);
  EXPECT_NE(stack(x, {}, Pass{}).y.to_vector(), want) << "and only while training";
  pass.step = 5;
  EXPECT_NE(stack(x, {}, pass).y.to_vector(), want) << "another mask at another step";
  Parameters q(3);
  RecurrentStack one(Scope{&q, "rnn", ""}, stack_of(Cell::gru, 1, 0.5));
  EXPECT_EQ(one(x, {}, pass).y.to_vector(), one(x, {}, Pass{}).y.to_vector()) << "one layer has nothing between";
}

TEST(RecurrentStack, GradientsReachEveryParameter) {
  for (Cell cell : kCells) {
    Parameters p(3);
    RecurrentStack stack(Scope{&p, "rnn", ""}, stack_of(cell, 2, 0.3));
    Floats g(static_cast<size_t>(p.size()), 0.0f);
    Pass pass;
    pass.training = true;
    Tape tape(g.data());
    Tensor y = stack(random_tensor({3, 5, 6}, 1), {}, pass).y;
    tape.backward(sum(y * random_tensor(y.shape(), 2)));
    for (const Parameter& q : p.list()) {
      const auto from = g.begin() + q.offset;
      EXPECT_TRUE(std::all_of(from, from + q.shape.volume(), [](float v) { return v != 0 && std::isfinite(v); }))
          << q.name;
    }
  }
}

TEST(RecurrentStack, MistakesAreNamed) {
  Parameters p(3);
  EXPECT_THROW(RecurrentStack(Scope{&p, "a", ""}, stack_of(Cell::rnn, 0)), Error);
  EXPECT_THROW(RecurrentLayer(Scope{&p, "b", ""}, Cell::rnn, 4, 0), Error);
  RecurrentStack stack(Scope{&p, "c", ""}, stack_of(Cell::rnn, 2));
  RecurrentStates one;
  one.layers.resize(1);
  EXPECT_THROW(stack(random_tensor({1, 2, 6}, 1), one, Pass{}), Error);
}

}  // namespace
}  // namespace bary
