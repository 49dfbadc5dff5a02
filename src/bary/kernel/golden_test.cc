// SPDX-License-Identifier: Apache-2.0
// Hashes of what the kernels compute from fixed inputs: whoever runs the tests, with whatever compiler, processor and
// instruction set, proves that the bits are the same. A change here is a change of every trained weight: say so.
#include "bary/base/parallel.h"
#include "bary/base/sha256.h"
#include "bary/kernel/attention_case_test.h"
#include "bary/kernel/gemm.h"
#include "bary/kernel/loss.h"
#include "bary/kernel/norm.h"
#include "bary/kernel/optimizer.h"
#include "bary/kernel/rows.h"

namespace bary::kernel {
namespace {

template <class F>
void expect_hash(const std::string& what, const std::string& want, F f) {
  FlushDenormals flush;
  std::vector<float> bits = on_every_isa(what, f);
  std::string bytes(bits.size() * 4, '\0');
  std::memcpy(bytes.data(), bits.data(), bytes.size());
  EXPECT_EQ(sha256_hex(bytes).substr(0, 16), want) << what;
}

std::vector<float> product(Activation act) {
  Matrix a = random_matrix(37, 50, 50, 1), w = random_matrix(90, 50, 50, 2), b = random_matrix(1, 90, 90, 3);
  Matrix packed(1, packed_size(90, 50)), c(37, 90), d(37, 90);
  pack_transposed(w.data(), 90, 50, 50, packed.data());
  Epilogue e;
  e.bias = b.data();
  e.activation = act;
  e.derivative = d.data();
  e.derivative_ld = 90;
  gemm(37, 90, 50, a.data(), 50, packed.data(), c.data(), 90, e);
  std::vector<float> out = c.values();
  append(out, d.values());
  Matrix dw(90, 50);
  dw.fill(0);
  gemm_transposed(90, 50, 37, c.data(), 90, a.data(), 50, dw.data(), 50);
  append(out, dw.values());
  return out;
}

TEST(Golden, Products) {
  expect_hash("none", "46d2a9f3dcd70508", [] { return product(Activation::none); });
  expect_hash("gelu", "a7deea0d53ecffcf", [] { return product(Activation::gelu); });
  expect_hash("gelu_tanh", "662bd7230f0966e3", [] { return product(Activation::gelu_tanh); });
  expect_hash("silu", "ec55250829b4669b", [] { return product(Activation::silu); });
}

TEST(Golden, NormsLossAndOptimizer) {
  expect_hash("norms", "7a86c6f8bf10a1fb", [] {
    Matrix x = random_matrix(5, 77, 77, 1, 2, 1), w = random_matrix(1, 77, 77, 2), b = random_matrix(1, 77, 77, 3),
           y(5, 77);
    Matrix mean(1, 5), rstd(1, 5), dx(5, 77), dw(1, 77), db(1, 77);
    dw.fill(0);
    db.fill(0);
    NormRows r{5, 77, x.data(), 77, w.data(), b.data(), mean.data(), rstd.data(), 1e-5f};
    layer_norm(r, y.data(), 77);
    layer_norm_backward(r, y.data(), 77, {dx.data(), 77, false, dw.data(), db.data()});
    std::vector<float> out = y.values();
    for (Matrix* m : {&dx, &dw, &db, &mean, &rstd}) append(out, m->values());
    rms_norm(r, y.data(), 77);
    append(out, y.values());
    return out;
  });
  expect_hash("loss", "31079202348d4327", [] {
    Matrix x = random_matrix(3, 300, 300, 1, 6);
    const int32_t targets[] = {7, -1, 299};
    double losses[3];
    cross_entropy_rows(3, 300, x.data(), 300, targets, 0.125f, losses);
    std::vector<float> out = x.values();
    for (double l : losses) out.push_back(static_cast<float>(l));
    return out;
  });
  expect_hash("adamw", "b0a48e8bd56d829e", [] {
    Matrix g = random_matrix(1, 100, 100, 1), p = random_matrix(1, 100, 100, 2), m(1, 100), v(1, 100);
    m.fill(0);
    v.fill(0);
    AdamW o;
    o.learning_rate = 1e-3f;
    o.decay = 0.01f;
    o.correction1 = 0.1f;
    o.sqrt_correction2 = 0.0316f;
    for (int i = 0; i < 3; ++i) adamw(o, 100, g.data(), p.data(), m.data(), v.data());
    std::vector<float> out = p.values();
    out.push_back(static_cast<float>(squared_norm(g.data(), 100)));
    return out;
  });
}

std::vector<float> attention_bits(const AttentionHead& h) {
  AttentionCase c(h);
  AttentionRun run(c, h.S <= kKeyBlock);
  Matrix out(h.T, h.D, c.dout.ld()), scratch(1, attention_backward_scratch(h.D));
  out.set([&](int64_t t, int64_t d) { return run.out(t, d); });
  Matrix dq(h.T, h.D), dk(h.S, h.D), dv(h.S, h.D);
  for (Matrix* m : {&dq, &dk, &dv}) m->fill(0);
  attention_backward(h,
                     {c.q.data(), c.k.data(), c.v.data(), c.q.ld(), c.k.ld(), out.data(), c.dout.data(), c.dout.ld()},
                     run.kept, {dq.data(), dk.data(), dv.data(), h.D, h.D}, scratch.data());
  std::vector<float> all = run.values();
  for (Matrix* m : {&dq, &dk, &dv}) append(all, m->values());
  return all;
}

TEST(Golden, Attention) {
  expect_hash("causal", "6b7b2cdbb69b9fcf", [] { return attention_bits(head_of(70, 20)); });
  expect_hash("full", "fe94558bdd85461e", [] { return attention_bits(head_of(33, 16, false)); });
  expect_hash("long window with slope and dropout", "8327ff677e7464e8", [] {
    AttentionHead h = with_dropout(head_of(300, 8, true, 280), 0.2f);
    h.slope = 0.125f;
    return attention_bits(h);
  });
}

TEST(Golden, Rows) {
  expect_hash("average and rotation", "683cde9adb8613d2", [] {
    Matrix x = random_matrix(40, 24, 24, 1), sum(1, 24), y(40, 24), cosines(40, 6), sines(40, 6);
    sum.fill(0);
    prefix_mean(40, 24, 0, x.data(), 24, sum.data(), y.data(), 24);
    cosines.set([](int64_t t, int64_t i) { return 1.0f / static_cast<float>(1 + t + i); });
    sines.set([](int64_t t, int64_t i) { return 1.0f - 1.0f / static_cast<float>(2 + t * i); });
    rotate_rows(40, 2, 12, x.data(), 24, cosines.data(), sines.data(), 1);
    std::vector<float> out = y.values();
    append(out, x.values());
    return out;
  });
}

}  // namespace
}  // namespace bary::kernel
