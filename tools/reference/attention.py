# SPDX-License-Identifier: Apache-2.0
"""Goldens of nn.MultiheadAttention and F.scaled_dot_product_attention, outputs of mean magnitude about 0.16."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

from golden import normal, save, start

MAGNITUDE = 0.16


def alike(generator, *shape):
    """Rows along T that share a part: an average over many keeps its size, so that one absolute bound means the same
    for the first row and the last."""
    shared = normal(generator, *shape[:-2], 1, shape[-1])
    return 0.7 * shared + 0.7 * normal(generator, *shape)


def causal_mask(length):
    return torch.full((length, length), float("-inf")).triu(1)


def run_module(module, x, dy):
    x = x.clone().requires_grad_()
    mask = causal_mask(x.shape[1]).to(x.dtype)
    y, _ = module(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)
    module.zero_grad()
    y.backward(dy)
    return y.detach(), x.grad, {name: p.grad for name, p in module.named_parameters()}


def multihead(name, bias, in_bias, generator):
    d, heads, length, batch = 64, 4, 37, 2
    module = nn.MultiheadAttention(d, heads, bias=bias, batch_first=True)
    with torch.no_grad():
        for key, p in module.named_parameters():
            if key == "out_proj.bias" or (key == "in_proj_bias" and in_bias):
                p.copy_(0.1 * normal(generator, *p.shape))  # PyTorch starts them at zero, which would test nothing
    x = alike(generator, batch, length, d)
    # y is linear in the output matrix: scaling it sets the magnitude and leaves the scores as PyTorch starts them
    with torch.no_grad():
        bias_part = module.out_proj.bias if bias else 0.0
        mask = causal_mask(length)
        y, _ = module(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)
        module.out_proj.weight.mul_(MAGNITUDE / (y - bias_part).abs().mean())
    dy = normal(generator, batch, length, d)
    y, dx, grads = run_module(module, x, dy)
    truth_y, truth_dx, _ = run_module(copy.deepcopy(module).double(), x.double(), dy.double())
    tensors = {"x": x, "dy": dy, "y": y, "dx": dx, "y_truth": truth_y.float(), "dx_truth": truth_dx.float()}
    for key, p in module.named_parameters():
        if key == "in_proj_bias" and not in_bias:
            continue
        tensors[f"weight.{key}"] = p
        tensors[f"grad.{key}"] = grads[key]
    save(f"multihead_{name}", tensors,
         f"nn.MultiheadAttention(d {d}, heads {heads}), causal, batch_first; x, y (B {batch}, T {length}, C {d})")
    print(f"  mean |y| {y.abs().mean():.4f}, max |y - truth| {(y - truth_y).abs().max():.2e}, "
          f"max |dx - truth| {(dx - truth_dx).abs().max():.2e}")


def attend(q, k, v, dy, causal):
    q, k, v = (t.clone().requires_grad_() for t in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    y.backward(dy)
    return {"y": y.detach(), "dq": q.grad, "dk": k.grad, "dv": v.grad}


def dot_product(name, shape, generator):
    q, k, dy = (normal(generator, *shape) for _ in range(3))
    v = alike(generator, *shape)
    # y is linear in v; one v for both masks, and as a full softmax averages more the causal outputs set the scale
    v = v * (MAGNITUDE / F.scaled_dot_product_attention(q, k, v, is_causal=True).abs().mean())
    tensors = {"q": q, "k": k, "v": v, "dy": dy}
    for kind in ("causal", "full"):
        got = attend(q, k, v, dy, kind == "causal")
        truth = attend(q.double(), k.double(), v.double(), dy.double(), kind == "causal")
        for key, value in got.items():
            tensors[f"{kind}.{key}"] = value
        tensors[f"{kind}.y_truth"] = truth["y"].float()
        gaps = ", ".join(f"{key} {(got[key] - truth[key]).abs().max():.2e}" for key in got)
        print(f"  {name} {kind}: mean |y| {got['y'].abs().mean():.4f}, max gap to float64: {gaps}")
    save(f"dot_product_{name}", tensors, f"scaled_dot_product_attention, (B, H, T, D) {list(shape)}, causal and full")


if __name__ == "__main__":
    generator = start(1)
    torch.manual_seed(1)
    multihead("no_bias", bias=False, in_bias=False, generator=generator)
    multihead("out_bias", bias=True, in_bias=False, generator=generator)
    multihead("bias", bias=True, in_bias=True, generator=generator)
    dot_product("t37", (2, 3, 37, 16), generator)
    dot_product("t300", (1, 1, 300, 16), generator)
