// SPDX-License-Identifier: Apache-2.0
// Recurrent layers give the same bits however a text is cut, with whomever it is batched, on every instruction set and
// any number of threads.
#include "bary/base/parallel.h"
#include "bary/tensor/parameters.h"
#include "bary/tensor/recurrent_case_test.h"

namespace bary {
namespace {

constexpr Cell kCells[] = {Cell::rnn, Cell::lstm, Cell::gru};

std::vector<Tensor> inputs_of(const RecurrentSizes& s) {
  std::vector<Tensor> in;
  for (const Shape& shape : s.inputs()) in.push_back(random_tensor(shape, 100 + in.size()));
  return in;
}

// Sequences [b, b + count) and steps [t, t + steps) of rows (B,T,n)
Floats part_of(const Floats& v, const RecurrentSizes& s, std::array<int64_t, 2> sequences,
               std::array<int64_t, 2> steps) {
  const int64_t n = static_cast<int64_t>(v.size()) / (s.B * s.T);
  Floats out;
  for (int64_t b = sequences[0]; b < sequences[0] + sequences[1]; ++b)
    out.insert(out.end(), v.begin() + (b * s.T + steps[0]) * n, v.begin() + (b * s.T + steps[0] + steps[1]) * n);
  return out;
}

TEST(RecurrentBits, InPiecesOfAnyLength) {
  for (Cell cell : kCells) {
    const RecurrentSizes s{cell, 3, 12, 7, 37};
    const std::vector<Tensor> in = inputs_of(s);
    const RecurrentOutput whole = recurrent_of(s, in);
    const Floats x = in[0].to_vector(), y = whole.y.to_vector();
    for (int64_t piece : {1, 5, 11}) {
      RecurrentOutput out;
      out.last = {in[5], s.lstm() ? in[6] : Tensor()};
      for (int64_t t = 0; t < s.T; t += piece) {
        const int64_t n = std::min(piece, s.T - t);
        out = recurrent(Tensor::from({s.B, n, s.C}, part_of(x, s, {0, s.B}, {t, n})),
                        {in[1], in[2] * kWeightScale, in[3], in[4]}, out.last, s.options());
        expect_same_bits(out.y.to_vector(), part_of(y, s, {0, s.B}, {t, n}), s.name());
      }
      expect_same_bits(out.last.h.to_vector(), whole.last.h.to_vector(), "last h");
      if (s.lstm()) expect_same_bits(out.last.c.to_vector(), whole.last.c.to_vector(), "last c");
    }
  }
}

// Alone, without padding, each sequence has the values and gradients that it has among 67 others of other lengths.
TEST(RecurrentBits, OtherSequencesAndPaddingChangeNothing) {
  for (Cell cell : kCells) {
    RecurrentSizes s{cell, 68, 9, 5, 18};
    for (int64_t b = 0; b < s.B; ++b) s.lengths.push_back(b % 10);
    const std::vector<Tensor> in = inputs_of(s);
    auto run = [&](int64_t b, int64_t count, bool padded) {
      const int64_t T = padded ? s.T : s.lengths[static_cast<size_t>(b)];
      Tensor x = Tensor::from({count, T, s.C}, part_of(in[0].to_vector(), s, {b, count}, {0, T})).require_grad();
      RecurrentState first;
      RecurrentSizes rows = s;
      rows.T = 1;
      first.h = Tensor::from({count, s.H}, part_of(in[5].to_vector(), rows, {b, count}, {0, 1})).require_grad();
      if (s.lstm())
        first.c = Tensor::from({count, s.H}, part_of(in[6].to_vector(), rows, {b, count}, {0, 1})).require_grad();
      RecurrentOptions o = s.options();
      o.lengths =
          padded ? o.lengths.subspan(static_cast<size_t>(b), static_cast<size_t>(count)) : std::span<const int64_t>();
      Tape tape;
      RecurrentOutput out = recurrent(x, {in[1], in[2] * kWeightScale, in[3], in[4]}, first, o);
      const Floats weights = normals(s.B * s.T * s.H, 3);
      tape.backward(sum(out.y * Tensor::from(out.y.shape(), part_of(weights, s, {b, count}, {0, T}))) +
                    sum(out.last.h));
      return std::array<Floats, 4>{out.y.to_vector(), out.last.h.to_vector(), x.grad_vector(), first.h.grad_vector()};
    };
    const auto all = run(0, s.B, true);
    for (int64_t b : {1, 9, 31, 67}) {
      const int64_t T = s.lengths[static_cast<size_t>(b)];
      const auto alone = run(b, 1, false);
      RecurrentSizes rows = s;
      rows.T = 1;
      for (size_t i : {0, 2}) {
        expect_same_bits(part_of(all[i], s, {b, 1}, {0, T}), alone[i], s.name());
        for (float v : part_of(all[i], s, {b, 1}, {T, s.T - T})) ASSERT_EQ(v, 0);
      }
      for (size_t i : {1, 3}) expect_same_bits(part_of(all[i], rows, {b, 1}, {0, 1}), alone[i], s.name());
    }
  }
}

// More padding, with whatever in it, changes no gradient of a weight either.
TEST(RecurrentBits, MorePaddingChangesNoGradient) {
  for (Cell cell : kCells) {
    auto run = [&](int64_t T) {
      const RecurrentSizes s{cell, 5, T, 6, 20, {4, 1, 3, 4, 2}};
      std::vector<Tensor> in = inputs_of(s);
      in[0] = random_tensor(in[0].shape(), static_cast<uint64_t>(T));
      const Floats text = normals(s.B * 4 * s.C, 50);
      for (int64_t b = 0; b < s.B; ++b)
        for (int64_t t = 0; t < 4; ++t) std::copy_n(text.data() + (b * 4 + t) * s.C, s.C, in[0].row(b * T + t));
      for (size_t i = 1; i < 5; ++i) in[i].require_grad();
      Tape tape;
      const RecurrentOutput out = recurrent_of(s, in);
      tape.backward(sum(out.y) + weighted(out.last.h, 8));
      Floats all;
      for (size_t i = 1; i < 5; ++i) kernel::append(all, in[i].grad_vector());
      return all;
    };
    const Floats tight = run(4);
    for (int64_t T : {5, 9}) expect_same_bits(run(T), tight, "T " + std::to_string(T));
  }
}

TEST(RecurrentBits, AnyNumberOfThreads) {
  for (Cell cell : kCells) {
    RecurrentSizes s{cell, 41, 6, 40, 70};
    for (int64_t b = 0; b < s.B; ++b) s.lengths.push_back(b % 7);
    set_threads(1);
    const Floats one = run_recurrent(s).all();
    for (int n : {2, 3}) {
      set_threads(n);
      expect_same_bits(run_recurrent(s).all(), one, s.name() + " with " + std::to_string(n) + " threads");
      Floats inside;
      parallel_tasks(2, [&](int64_t i, int) {
        if (i == 1) inside = run_recurrent(s).all();
      });
      expect_same_bits(inside, one, s.name() + " inside a loop");
    }
    set_threads(0);
  }
}

TEST(RecurrentBits, EveryInstructionSet) {
  for (Cell cell : kCells)
    kernel::on_every_isa("recurrent", [&] {
      return run_recurrent({cell, 8, 5, 21, 35, {5, 0, 1, 2, 3, 4, 5, 5}}).all();
    });
}

// Groups of a tape are sums of their own, added in their order; parameters have the bits of other tensors.
TEST(RecurrentBits, GroupsOfSequences) {
  for (Cell cell : kCells) {
    const RecurrentSizes s{cell, 6, 500, 9, 33};  // more rows than weights' gradients take at a time
    const std::vector<Tensor> in = inputs_of(s);
    Parameters p(1);
    std::vector<Tensor> parameters;
    const char* names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    for (size_t i = 0; i < 4; ++i) {
      const Shape shape = in[i + 1].shape();
      parameters.push_back(p.add(names[i], shape, Role::matrix, {}));
      const Floats values = (in[i + 1] * (i == 1 ? kWeightScale : 1.0f)).to_vector();
      std::copy(values.begin(), values.end(), p.values_of(p.list().back()).begin());
    }
    p.changed();
    auto run = [&](int64_t b, int64_t count, TapeGroups groups) {
      Floats g(static_cast<size_t>(p.size()), 0.0f);
      Tape tape(g.data(), 0, groups);
      const Tensor x = Tensor::from({count, s.T, s.C}, part_of(in[0].to_vector(), s, {b, count}, {0, s.T}));
      const RecurrentOutput out =
          recurrent(x, {parameters[0], parameters[1], parameters[2], parameters[3]}, {}, s.options());
      tape.backward(sum(out.y));
      return g;
    };
    Floats by_hand = run(0, 2, {});
    for (int64_t b : {2, 4}) {
      const Floats more = run(b, 2, {});
      for (size_t i = 0; i < more.size(); ++i) by_hand[i] += more[i];
    }
    expect_same_bits(run(0, 6, {2, 6}), by_hand, s.name());
    expect_same_bits(run(0, 6, {}), run(0, 6, {6, 6}), s.name());
  }
}

}  // namespace
}  // namespace bary
