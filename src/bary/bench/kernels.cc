// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/kernels.h"

#include <fmt/format.h>

#include <functional>

#include "bary/base/clock.h"
#include "bary/base/parallel.h"
#include "bary/bench/step.h"
#include "bary/kernel/gemm.h"
#include "bary/kernel/loss.h"
#include "bary/kernel/machine.h"
#include "bary/kernel/norm.h"
#include "bary/kernel/optimizer.h"
#include "bary/kernel/rows.h"
#include "bary/tensor/tensor.h"

namespace bary {
namespace {

Tensor filled(int64_t rows, int64_t columns, float value = 0.01f) {
  Tensor t(Shape{rows, columns});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) t.row(r)[c] = value * static_cast<float>((r * 7 + c * 13) % 31 - 15);
  return t;
}

class Measured {
 public:
  explicit Measured(double seconds) : seconds_(seconds) {}
  // `amount`: operations, bytes or elements of one call
  void add(const std::string& name, const std::string& shape, Limit limit, double amount,
           const std::function<void()>& call) {
    std::vector<double> rates;
    const double before = most(limit);
    call();
    for (Stopwatch whole; whole.seconds() < seconds_ || rates.size() < 3;) {
      Stopwatch watch;
      call();
      rates.push_back(amount / watch.seconds() / 1e9);
    }
    figures.push_back({name, shape, limit, median(rates), (before + most(limit)) / 2});
  }
  std::vector<KernelFigure> figures;

 private:
  static double most(Limit limit) {
    if (limit == Limit::none) return 0;
    // Short ones and their median, as the kernels are timed: what interrupts both is left out of both.
    std::vector<double> rates;
    for (int i = 0; i < 15; ++i)
      rates.push_back(limit == Limit::tile ? kernel::measure_tile_peak(0.0005) : kernel::measure_stream(0.001));
    return median(rates);
  }
  double seconds_;
};

std::string shape_text(int64_t m, int64_t n, int64_t k) { return fmt::format("{} x {} x {}", m, n, k); }

void products(Measured& out) {
  for (auto [m, n, k] :
       {std::array<int64_t, 3>{128, 384, 128}, {128, 512, 128}, {128, 128, 512}, {128, 1024, 128}, {128, 128, 1024}}) {
    const Tensor a = filled(m, k), w = filled(n, k), c(Shape{m, n});
    Buffer packed(kernel::packed_size(n, k));
    kernel::pack_transposed(w.data(), n, k, w.stride(), packed.data());
    const kernel::Product p{m, n, k, a.data(), a.stride(), c.data(), c.stride()};
    out.add("product, packed", shape_text(m, n, k), Limit::tile, 2.0 * static_cast<double>(m * n * k),
            [&] { kernel::gemm(p, {packed.data()}); });
  }
  for (auto [m, n, k] : {std::array<int64_t, 3>{256, 768, 768}, {256, 3072, 768}, {256, 768, 3072}}) {
    const Tensor a = filled(m, k), w = filled(n, k), c(Shape{m, n});
    const kernel::Product p{m, n, k, a.data(), a.stride(), c.data(), c.stride()};
    out.add("product, packed on the way", shape_text(m, n, k), Limit::tile, 2.0 * static_cast<double>(m * n * k), [&] {
      kernel::gemm(p, {w.data(), w.stride(), kernel::Form::transposed});
    });
  }
  for (auto [m, n, r] : {std::array<int64_t, 3>{512, 128, 128}, {1024, 128, 128}, {768, 768, 256}}) {
    const Tensor a = filled(r, m), b = filled(r, n), c = filled(m, n);
    out.add("weight gradient", shape_text(m, n, r), Limit::tile, 2.0 * static_cast<double>(m * n * r),
            [&, m = m, n = n, r = r] {
              kernel::gemm_transposed(m, n, r, a.data(), a.stride(), b.data(), b.stride(), c.data(), c.stride());
            });
  }
}

void rows(Measured& out) {
  const int64_t n = 128;
  {
    const Tensor x = filled(n, 512), y(Shape{n, 512}), d(Shape{n, 512});
    out.add("GELU and derivative", "128 x 512", Limit::none, static_cast<double>(n * 512), [&] {
      std::copy_n(x.data(), n * x.stride(), y.data());
      kernel::activate_rows(kernel::Activation::gelu, n, 512, y.data(), y.stride(), d.data(), d.stride());
    });
  }
  {
    const Tensor x = filled(n, 128), y(Shape{n, 128}), w = filled(1, 128), b = filled(1, 128), s(Shape{2, n});
    const kernel::NormRows r{n, 128, x.data(), x.stride(), w.data(), b.data(), s.row(0), s.row(1), 1e-5f};
    out.add("LayerNorm", "128 x 128", Limit::none, static_cast<double>(n * 128),
            [&] { kernel::layer_norm(r, y.data(), y.stride()); });
  }
  {
    const Tensor x = filled(n, 1024), y(Shape{n, 1024});
    const std::vector<int32_t> targets(static_cast<size_t>(n), 3);
    std::vector<double> losses(static_cast<size_t>(n));
    out.add("softmax, loss and gradient", "128 x 1024", Limit::none, static_cast<double>(n * 1024), [&] {
      std::copy_n(x.data(), n * x.stride(), y.data());
      kernel::cross_entropy_rows(n, 1024, y.data(), y.stride(), targets.data(), 1, losses.data());
    });
  }
}

void streams(Measured& out) {
  constexpr int64_t n = int64_t{1} << 23;
  const Tensor g = filled(1, n), p = filled(1, n), m = Tensor::zeros({1, n}), v = Tensor::zeros({1, n});
  kernel::AdamW o;
  o.learning_rate = 1e-3f;
  out.add("AdamW", fmt::format("{}", n), Limit::memory, 28.0 * static_cast<double>(n),
          [&] { kernel::adamw(o, n, g.data(), p.data(), m.data(), v.data()); });
  out.add("norm of a gradient", fmt::format("{}", n), Limit::memory, 4.0 * static_cast<double>(n),
          [&] { kernel::squared_norm(g.data(), n); });
}

}  // namespace

std::vector<KernelFigure> measure_kernels(double seconds) {
  FlushDenormals flush;  // as in a training step
  Measured out(seconds);
  products(out);
  rows(out);
  streams(out);
  return out.figures;
}

}  // namespace bary
