#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/bary/lab/parity_values.h: outputs of PyTorch for inputs that both sides make from whole numbers, so that the
experiment "parity" needs no file. python3 lab_parity.py > ../../src/bary/lab/parity_values.h"""
import torch
import torch.nn.functional as F

T, C, H = 16, 32, 4


def made(which, shape, scale):
    """The number i of tensor `which`: a 32-bit mix of both, its top 16 bits as a multiple of scale / 32768."""
    n = 1
    for s in shape:
        n *= s
    out = []
    for i in range(n):
        h = (i * 2654435761 + which * 40503) & 0xFFFFFFFF
        h ^= h >> 15
        h = (h * 0x2C1B3C6D) & 0xFFFFFFFF
        h ^= h >> 12
        out.append(((h >> 16) - 32768) / 32768 * scale)
    return torch.tensor(out, dtype=torch.float32).reshape(shape)


def listing(name, values):
    print(f"inline constexpr float {name}[] = {{")
    texts = [f"{v:.9g}f" if "." in f"{v:.9g}" or "e" in f"{v:.9g}" else f"{v:.9g}.0f" for v in values.flatten().tolist()]
    for i in range(0, len(texts), 8):
        print("    " + ", ".join(texts[i : i + 8]) + ",")
    print("};")


torch.manual_seed(0)
x = made(1, (1, T, C), 2.0)
attention = torch.nn.MultiheadAttention(C, H, bias=False, batch_first=True)
with torch.no_grad():
    attention.in_proj_weight.copy_(made(2, (3 * C, C), 0.5))
    attention.out_proj.weight.copy_(made(3, (C, C), 0.046875))
    mask = torch.triu(torch.full((T, T), float("-inf")), 1)
    y = attention(x, x, x, attn_mask=mask, need_weights=False)[0]
    q, k, v = (made(4 + i, (1, H, T, C // H), 0.5 if i == 2 else 2.0) for i in range(3))
    s = F.scaled_dot_product_attention(q, k, v, is_causal=True)
print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Made by tools/reference/lab_parity.py with PyTorch {torch.__version__.split('+')[0]}: nn.MultiheadAttention (1,{T},{C}), {H} heads, causal,")
print(f"// and scaled_dot_product_attention (1,{H},{T},{C // H}), causal. Mean |y|: {y.abs().mean():.3f} and {s.abs().mean():.3f}.")
print("#pragma once\n\nnamespace bary::lab {\n")
print(f"inline constexpr int kParityT = {T}, kParityC = {C}, kParityHeads = {H};")
listing("kMultiheadAttention", y)
listing("kDotProductAttention", s)
print("\n}  // namespace bary::lab")
