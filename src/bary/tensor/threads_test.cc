// SPDX-License-Identifier: Apache-2.0
// One, two and three threads, and one thread of a loop over sequences, give the same bits, forward and backward.
#include "bary/base/parallel.h"
#include "bary/tensor/attention.h"
#include "bary/tensor/fused.h"
#include "bary/tensor/gradient_check_test.h"

namespace bary {
namespace {

void expect_same_for_any_threads(const std::string& what, const std::function<Floats()>& f) {
  set_threads(1);
  const Floats one = f();
  for (int n : {2, 3}) {
    set_threads(n);
    expect_same_bits(f(), one, what + " with " + std::to_string(n) + " threads");
    Floats inside;
    parallel_tasks(2, [&](int64_t i, int) {
      if (i == 1) inside = f();
    });
    expect_same_bits(inside, one, what + " inside a loop");
  }
  set_threads(0);
}

// the gradients of sum(y c) for random c, after y itself
Floats with_gradients(const std::vector<Tensor>& inputs, const std::function<Tensor()>& op) {
  Tape tape;
  Tensor y = op();
  Floats out = y.to_vector();
  tape.backward(sum(y * random_tensor(y.shape(), 9)));
  for (const Tensor& x : inputs) kernel::append(out, x.grad_vector());
  return out;
}

TEST(Threads, Linear) {
  for (auto [rows, n, k] :
       {std::array<int64_t, 3>{200, 130, 70}, {3, 2000, 100}, {97, 64, 64}, {1, 1, 1}, {150, 48, 49}}) {
    expect_same_for_any_threads("linear", [&, rows = rows, n = n, k = k] {
      Tensor x = random_tensor({rows, k}, 1).require_grad(), w = random_tensor({n, k}, 2).require_grad();
      Tensor b = random_tensor({n}, 3).require_grad(), onto = random_tensor({rows, n}, 4).require_grad();
      return with_gradients({x, w, b, onto}, [&] { return linear(x, w, b, onto); });
    });
  }
}

TEST(Threads, LinearOfAParameter) {
  expect_same_for_any_threads("parameter", [] {
    Parameters p(1);
    Tensor w = p.add("w", {200, 150}, Role::matrix, {Init::Kind::normal, 1}), x = random_tensor({120, 150}, 1);
    Floats g(static_cast<size_t>(p.size()), 0.0f);
    Tape tape(g.data());
    Tensor y = linear(x, w);
    tape.backward(sum(y));
    kernel::append(g, y.to_vector());
    return g;
  });
}

TEST(Threads, NormsAndMlp) {
  expect_same_for_any_threads("norms and mlp", [] {
    Tensor x = random_tensor({170, 40}, 1).require_grad(), w = random_tensor({40}, 2).require_grad(),
           b = random_tensor({40}, 3).require_grad();
    Tensor up = random_tensor({160, 40}, 4).require_grad(), down = random_tensor({40, 160}, 5).require_grad();
    return with_gradients({x, w, b, up, down}, [&] {
      Tensor y = mlp(layer_norm(x, w, b), {up, {}, down, b}, Activation::gelu, x);
      return rms_norm(y, w);
    });
  });
}

TEST(Threads, Attention) {
  RotaryTable table(270, 16, 10000);
  for (int64_t T : {1, 40, 270}) {
    expect_same_for_any_threads("attention", [&, T] {
      AttentionOptions o;
      o.heads = 4;
      o.kv_heads = 2;
      o.rotary = &table;
      o.dropout.p = 0.1f;
      Tensor x = random_tensor({3, T, 8 * 16}, 1).require_grad();
      return with_gradients({x}, [&] { return attention(x, o); });
    });
  }
}

TEST(Threads, LossAndItsEvaluation) {
  std::vector<int32_t> targets(300);
  for (size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<int32_t>(i * 37 % 500);
  for (bool learn : {true, false}) {
    expect_same_for_any_threads("loss", [&, learn] {
      Tensor x = random_tensor({300, 32}, 1), w = random_tensor({500, 32}, 2), b = random_tensor({500}, 3);
      if (learn) x.require_grad(), w.require_grad(), b.require_grad();
      Tape tape;
      LossSum loss = linear_cross_entropy(x, w, b, targets, 0.01f);
      Floats out = loss.loss.to_vector();
      out.push_back(static_cast<float>(loss.sum));
      if (!learn) return out;
      tape.backward(loss.loss);
      for (const Tensor& t : {x, w, b}) kernel::append(out, t.grad_vector());
      return out;
    });
  }
}

// Small numbers are flushed on every path, also where a product is too small to be worth a second thread.
TEST(Threads, DenormalsAreFlushedInsideAndOutside) {
  expect_same_for_any_threads("denormals", [] {
    Tensor x = random_tensor({3, 8}, 1, 1e-20), w = random_tensor({5, 8}, 2, 1e-19);
    return linear(x, w).to_vector();
  });
}

}  // namespace
}  // namespace bary
