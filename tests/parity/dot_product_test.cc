// SPDX-License-Identifier: Apache-2.0
// Against F.scaled_dot_product_attention: short (one block of keys, the pattern kept) and 300 positions (two blocks,
// the pattern made again for the backward pass), with and without the causal mask.
#include "bary/tensor/attention.h"
#include "golden.h"

namespace bary::parity {
namespace {

struct Case {
  const char* file;
  Mask mask;
};
class DotProduct : public testing::TestWithParam<Case> {};

// (B,H,T,D) tensors of the file side by side as (B,T,3 H D)
Tensor side_by_side(const Golden& g, const std::vector<std::string>& names) {
  const Shape s = g.shape(names[0]);
  const int64_t B = s[0], H = s[1], T = s[2], D = s[3];
  Tensor out(Shape{B, T, static_cast<int64_t>(names.size()) * H * D});
  for (size_t n = 0; n < names.size(); ++n) {
    const std::vector<float> v = g.floats(names[n]);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h)
        for (int64_t t = 0; t < T; ++t)
          for (int64_t d = 0; d < D; ++d)
            out.row(b * T + t)[(static_cast<int64_t>(n) * H + h) * D + d] =
                v[static_cast<size_t>(((b * H + h) * T + t) * D + d)];
  }
  return out;
}

TEST_P(DotProduct, OutputAndGradientsFollowPyTorch) {
  Golden g(GetParam().file);
  const std::string kind = GetParam().mask == Mask::causal ? "causal." : "full.";
  const Shape s = g.shape("q");
  Tensor qkv = side_by_side(g, {"q", "k", "v"}).require_grad();
  AttentionOptions o;
  o.heads = s[1], o.mask = GetParam().mask;
  Tape tape;
  Tensor y = attention(qkv, o);
  tape.backward(sum(y * side_by_side(g, {"dy"})));

  const std::vector<float> truth = side_by_side(g, {kind + "y_truth"}).to_vector();
  // softmax and mixing over T keys are within eps sqrt(T) of the largest value at most, and that is less here
  expect_within(y.to_vector(), truth, 4e-7, "y", side_by_side(g, {kind + "y"}).to_vector());
  // the gradients in the file are PyTorch's float32, with an error of their own of the same size
  const std::vector<float> want = side_by_side(g, {kind + "dq", kind + "dk", kind + "dv"}).to_vector();
  expect_within(qkv.grad_vector(), want, chain_bound(2, s[2], want), "dq, dk, dv");
}

INSTANTIATE_TEST_SUITE_P(Lengths, DotProduct,
                         testing::Values(Case{"dot_product_t37", Mask::causal}, Case{"dot_product_t37", Mask::full},
                                         Case{"dot_product_t300", Mask::causal}, Case{"dot_product_t300", Mask::full}),
                         [](const auto& which) {
                           return std::string(which.param.file).substr(12) +
                                  (which.param.mask == Mask::causal ? "Causal" : "Full");
                         });

}  // namespace
}  // namespace bary::parity
