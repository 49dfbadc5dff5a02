#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's attention alone, forward and backward, driven line by line so that it can alternate with bary.

Answers "step N" with {"ms": [...]}, the times of N runs of scaled_dot_product_attention (causal, float32) from q, k, v to
their gradients, as `bary bench attention --lines` does.
"""
import argparse

import torch
import torch.nn.functional as F

from torch_step import serve


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    shape = (1, args.heads, args.length, args.width)
    q, k, v = (torch.randn(shape).requires_grad_() for _ in range(3))
    upstream = torch.randn(shape)

    def step():
        q.grad = k.grad = v.grad = None
        F.scaled_dot_product_attention(q, k, v, is_causal=True).backward(upstream)

    step()
    serve({"name": f"torch {torch.__version__.split('+')[0]} sdpa", "threads": args.threads}, step)


if __name__ == "__main__":
    main()
