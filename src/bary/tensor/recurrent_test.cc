// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/recurrent.h"

#include "bary/base/error.h"
#include "bary/tensor/recurrent_case_test.h"

namespace bary {
namespace {

constexpr Cell kCells[] = {Cell::rnn, Cell::lstm, Cell::gru};

// One number of a gradient has seen sums over channels and units at every step, and over all rows for a weight
double terms_of(const RecurrentSizes& s) { return static_cast<double>((s.C + s.H) * s.T + s.B * s.T); }

void check_sizes(const RecurrentSizes& s, RecurrentFunction f) {
  auto check = [&](const std::string& what, Tensor RecurrentState::*state, Doubles RecurrentDoubles::*values) {
    check_op({s.name() + " " + what, s.inputs(),
              [=](auto& in) {
                const RecurrentOutput out = recurrent_of(s, in, f);
                return state ? out.last.*state : out.y;
              },
              [=](auto& in) { return recurrent_formula(s, in).*values; }, terms_of(s)});
  };
  check("y", nullptr, &RecurrentDoubles::y);
  check("last h", &RecurrentState::h, &RecurrentDoubles::h);
  if (s.lstm()) check("last c", &RecurrentState::c, &RecurrentDoubles::c);
}

TEST(Recurrent, ValuesAndGradientsFollowTheFormula) {
  for (Cell cell : kCells) {
    for (const RecurrentSizes& s : std::vector<RecurrentSizes>{{cell, 1, 1, 1, 1},
                                                               {cell, 1, 3, 2, 3},
                                                               {cell, 3, 1, 3, 2},
                                                               {cell, 2, 3, 2, 17},
                                                               {cell, 4, 4, 3, 2, {4, 1, 0, 3}},
                                                               {cell, 2, 3, 1, 3, {2, 1}}})
      check_sizes(s, recurrent);
  }
}

TEST(Recurrent, TheDefinitionFollowsTheFormula) {
  for (Cell cell : kCells) check_sizes({cell, 3, 3, 2, 3, {3, 1, 2}}, recurrent_by_definition);
}

void expect_near(const RecurrentRun& got, const RecurrentRun& want, double terms) {
  auto near = [&](const Floats& a, const Floats& b, const std::string& what) {
    const Doubles d = doubles(b);
    expect_close(a, d, 16 * kEps * std::sqrt(terms) * std::max(1.0, largest(d)), what);
  };
  near(got.y, want.y, "y");
  near(got.h, want.h, "last h");
  near(got.c, want.c, "last c");
  for (size_t i = 0; i < got.gradients.size(); ++i)
    near(got.gradients[i], want.gradients[i], "gradient of input " + std::to_string(i));
}

TEST(Recurrent, IsItsDefinitionTruncatedOrNot) {
  for (Cell cell : kCells) {
    for (int64_t truncate : {0, 1, 2, 3, 7, 100}) {
      for (bool ragged : {false, true}) {
        RecurrentSizes s{cell, 5, 7, 6, 20};
        if (ragged) s.lengths = {7, 1, 3, 4, 0};
        s.truncate = truncate;
        SCOPED_TRACE(s.name() + " truncate " + std::to_string(truncate));
        expect_near(run_recurrent(s), run_recurrent(s, recurrent_by_definition), terms_of(s));
      }
    }
  }
}

// Truncation is what comes of calls on pieces, each starting from the numbers that the one before left.
TEST(Recurrent, TruncationIsPiecesOfTheirOwn) {
  for (Cell cell : kCells) {
    const int64_t B = 3, T = 5, C = 4, H = 18, piece = 2;
    const RecurrentSizes s{cell, B, T, C, H};
    std::vector<Tensor> in;
    for (const Shape& shape : s.inputs()) in.push_back(random_tensor(shape, 100 + in.size()));
    const RecurrentWeights w{in[1], in[2] * kWeightScale, in[3], in[4]};
    auto gradient_of_x = [&](const Tensor& x, const RecurrentState& first, const Floats& weights,
                             const RecurrentOptions& o, RecurrentState* last) {
      Tensor wanted = x;
      wanted.require_grad();
      Tape tape;
      const RecurrentOutput out = recurrent(wanted, w, first, o);
      tape.backward(sum(out.y * Tensor::from(out.y.shape(), weights)));
      if (last) *last = {Tensor::from({B, H}, out.last.h.to_vector()), {}};
      if (last && s.lstm()) last->c = Tensor::from({B, H}, out.last.c.to_vector());
      return wanted.grad_vector();
    };
    auto steps = [&](const Floats& v, int64_t width, int64_t from, int64_t count) {
      Floats part;
      for (int64_t b = 0; b < B; ++b)
        part.insert(part.end(), v.begin() + (b * T + from) * width, v.begin() + (b * T + from + count) * width);
      return part;
    };
    const Floats x = in[0].to_vector(), c = normals(B * T * H, 7);
    RecurrentState state{in[5], s.lstm() ? in[6] : Tensor()};
    const Floats whole = gradient_of_x(in[0], state, c, {cell, {}, piece}, nullptr);
    for (int64_t t = 0; t < T; t += piece) {
      const int64_t n = std::min(piece, T - t);
      const Floats part =
          gradient_of_x(Tensor::from({B, n, C}, steps(x, C, t, n)), state, steps(c, H, t, n), {cell, {}, 0}, &state);
      expect_same_bits(part, steps(whole, C, t, n), s.name() + " from step " + std::to_string(t));
    }
  }
}

TEST(Recurrent, WithoutBiasesAndWithoutAFirstState) {
  for (Cell cell : kCells) {
    const RecurrentSizes s{cell, 3, 4, 5, 19};
    auto run = [&](bool given) {
      std::vector<Tensor> in;
      for (const Shape& shape : s.inputs()) in.push_back(random_tensor(shape, 100 + in.size()));
      Tensor x = in[0], zero;
      x.require_grad();
      RecurrentWeights w{in[1].require_grad(), in[2].require_grad(), {}, {}};
      RecurrentState first;
      if (given) {
        w.bias_ih = w.bias_hh = Tensor::zeros({s.G() * s.H});
        first.h = Tensor::zeros({s.B, s.H});
        if (s.lstm()) first.c = Tensor::zeros({s.B, s.H});
      }
      Tape tape;
      const RecurrentOutput out = recurrent(x, w, first, s.options());
      Floats all = out.y.to_vector();
      tape.backward(weighted(out.y, 7));
      for (const Tensor& t : {x, in[1], in[2]}) kernel::append(all, t.grad_vector());
      return all;
    };
    expect_same_bits(run(false), run(true), s.name());
  }
}

TEST(Recurrent, OnlyTheFirstStateWantsAGradient) {
  for (Cell cell : kCells) {
    const RecurrentSizes s{cell, 3, 4, 5, 19, {4, 2, 0}};
    const RecurrentRun all = run_recurrent(s);
    for (size_t which = 5; which < s.inputs().size(); ++which) {
      std::vector<Tensor> in;
      for (const Shape& shape : s.inputs()) in.push_back(random_tensor(shape, 100 + in.size()));
      in[which].require_grad();
      Tape tape;
      const RecurrentOutput out = recurrent_of(s, in);
      Tensor loss = weighted(out.y, 7) + weighted(out.last.h, 8);
      if (s.lstm()) loss = loss + weighted(out.last.c, 9);
      tape.backward(loss);
      expect_same_bits(in[which].grad_vector(), all.gradients[which], s.name());
    }
  }
}

TEST(Recurrent, AResultThatNobodyUsesGivesNoGradient) {
  const RecurrentSizes s{Cell::gru, 2, 3, 2, 3};
  std::vector<Tensor> in;
  for (const Shape& shape : s.inputs()) in.push_back(random_tensor(shape, 100 + in.size()).require_grad());
  Tape tape;
  recurrent_of(s, in);
  Tensor other = random_tensor({1}, 1).require_grad();
  tape.backward(other * 2.0f);
  for (const Tensor& x : in) EXPECT_FALSE(x.has_grad());
}

TEST(Recurrent, MistakesAreNamed) {
  const Tensor x({2, 3, 4}), ih({20, 4}), hh({20, 5}), b({20}), h({2, 5});
  auto text_of = [&](const Tensor& in, const RecurrentWeights& w, const RecurrentState& s, RecurrentOptions o) {
    for (RecurrentFunction f : {recurrent, recurrent_by_definition}) {
      try {
        f(in, w, s, o);
      } catch (const Error& e) {
        if (f == recurrent_by_definition) return std::string(e.what());
      }
    }
    return std::string("accepted");
  };
  auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const std::vector<int64_t> one{1}, below{1, -1}, above{1, 4};
  expect(text_of(Tensor({2, 4}), {ih, hh, b, b}, {}, {}), "x is (2,4), expected (B,T,C)");
  expect(text_of(Tensor({2, 0, 4}), {ih, hh, b, b}, {}, {}), "at least one step");
  expect(text_of(x, {ih, hh, b, b}, {}, {Cell::gru}), "3 gates of 5 units need (15,4) and (15,5)");
  expect(text_of(x, {Tensor({20, 3}), hh, b, b}, {}, {}), "weight_ih is (20,3)");
  expect(text_of(x, {ih, hh, Tensor({5}), b}, {}, {}), "a bias is (5), expected (20)");
  expect(text_of(x, {ih, hh, b, b}, {Tensor({3, 5}), {}}, {}), "the first state is (3,5), expected (2,5)");
  expect(text_of(x, {ih, hh, b, b}, {h, Tensor({2, 4})}, {}), "the first state is (2,4)");
  expect(text_of(x, {Tensor({5, 4}), Tensor({5, 5}), {}, {}}, {h, h}, {Cell::rnn}), "only an lstm has");
  expect(text_of(x, {ih, hh, b, b}, {}, {Cell::lstm, {}, -1}), "truncate is -1");
  expect(text_of(x, {ih, hh, b, b}, {}, {Cell::lstm, one}), "1 lengths for 2 sequences");
  expect(text_of(x, {ih, hh, b, b}, {}, {Cell::lstm, below}), "a sequence of length -1");
  expect(text_of(x, {ih, hh, b, b}, {}, {Cell::lstm, above}), "a sequence of length 4 among sequences of 3 steps");
}

}  // namespace
}  // namespace bary
