// SPDX-License-Identifier: Apache-2.0
// Matrix products in float32. Every output element is one chain of fused multiply-adds in increasing k, whatever the
// tile, the tail or the number of rows in the call: so a row's result does not depend on its neighbours, on threads, or
// on the instruction set. Single-threaded: callers split rows (forward) or outputs (weight gradients).
// M rows, N columns, K the summed dimension; ld = floats between rows.
#pragma once
#include <cstdint>

namespace bary::kernel {

enum class Activation {
  none,
  gelu,       // x P(N < x), the exact form: Hendrycks and Gimpel 2016
  gelu_tanh,  // x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)), GPT-2's
  relu,       // max(x, 0)
  silu,       // x sigmoid(x)
  tanh,
};

// What happens to a product before it is stored: C = act((A B + bias) * times) + onto, absent parts left out.
struct Epilogue {
  const float* bias = nullptr;   // (N)
  const float* times = nullptr;  // (M,N), an activation's derivative in a backward pass; may be C itself
  int64_t times_ld = 0;
  const float* onto = nullptr;  // (M,N), the residual; may be C itself
  int64_t onto_ld = 0;
  Activation activation = Activation::none;  // not together with onto
  float* derivative = nullptr;               // (M,N), act'(A B + bias), kept for the backward pass; may be null
  int64_t derivative_ld = 0;
};

struct Product {  // C (M,N) = A (M,K) B (K,N)
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  float* c;
  int64_t ldc;
};

// B is read in panels of as many columns as the register tile is wide (the last one narrower). They are packed
// beforehand, or made on the way out of a matrix as it lies in memory: less memory, and cheaper where many rows of A
// use each.
enum class Form {
  packed,      // by pack_transposed or pack
  rows,        // B itself, rows ld apart
  transposed,  // W (N,K), rows ld apart: B = W^T
};
struct Right {
  const float* data;
  int64_t ld = 0;  // not of packed ones
  Form form = Form::packed;
};
int64_t panel_width();                                                                  // of the active instruction set
int64_t packed_size(int64_t n, int64_t k);                                              // floats
void pack_transposed(const float* w, int64_t n, int64_t k, int64_t ld, float* packed);  // W (N,K): for A W^T
void pack(const float* w, int64_t k, int64_t n, int64_t ld, float* packed);             // W (K,N): for A W

// A residual or a factor that is C itself needs a packed B.
void gemm(const Product& product, const Right& b, const Epilogue& epilogue = {});
void gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c, int64_t ldc,
          const Epilogue& epilogue = {});

// C (M,N) += A^T B with A (R,M), B (R,N): the chain over the rows continues from what C holds, so rows may come in any
// number of calls. Causal: rows of A before i + shift hold zeros in column i and are skipped. From zero: C holds
// nothing yet and counts as zeros. Group: so many rows are one chain, and the chains are added to C in their order (0:
// all rows are one).
struct RowStart {
  bool causal = false;
  int64_t shift = 0;
  bool from_zero = false;
  int64_t group = 0;
};
void gemm_transposed(int64_t m, int64_t n, int64_t r, const float* a, int64_t lda, const float* b, int64_t ldb,
                     float* c, int64_t ldc, RowStart start = {});

// out (N) += the sum over rows of A (R,N), in row order
void sum_rows(int64_t r, int64_t n, const float* a, int64_t lda, float* out);

}  // namespace bary::kernel
