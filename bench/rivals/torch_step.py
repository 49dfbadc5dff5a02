#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's training step of a small decoder, driven line by line so that it can alternate with bary.

Reads "step N" from standard input, runs N training steps and prints one JSON line {"ms": [...]}; "quit" or
the end of input ends it. The first line printed says what it is. Every shape: pre-norm, learned positions, fused AdamW,
scaled_dot_product_attention, one product for queries, keys and values.
"""
import argparse
import dataclasses
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Shape:
    V: int  # vocabulary
    C: int  # width
    H: int  # heads
    T: int  # window
    B: int  # sequences a step
    layers: int
    gpt2: bool = False  # tied head without bias, biases for q, k, v, GELU by tanh


SHAPES = {
    "block": Shape(1024, 128, 4, 128, 64, 1),
    "two-blocks": Shape(1024, 128, 4, 128, 64, 2),
    "nanogpt": Shape(65, 128, 4, 64, 12, 4),  # the README's run on a CPU
    "gpt2": Shape(50257, 768, 12, 64, 4, 12, gpt2=True),
}


class Attention(nn.Module):
    def __init__(self, s, project=True):
        super().__init__()
        self.heads = s.H
        self.qkv = nn.Linear(s.C, 3 * s.C, bias=s.gpt2)
        self.out_proj = nn.Linear(s.C, s.C) if project else nn.Identity()

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in self.qkv(x).split(C, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(s.C), nn.LayerNorm(s.C)
        self.attn = Attention(s)
        gelu = nn.GELU(approximate="tanh" if s.gpt2 else "none")
        self.mlp = nn.Sequential(nn.Linear(s.C, 4 * s.C), gelu, nn.Linear(4 * s.C, s.C))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Decoder(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(s.V, s.C), nn.Embedding(s.T, s.C)
        self.blocks = nn.Sequential(*(Block(s) for _ in range(s.layers)))
        self.ln_f = nn.LayerNorm(s.C)
        self.head = nn.Linear(s.C, s.V, bias=not s.gpt2)
        if s.gpt2:
            nn.init.normal_(self.wte.weight, std=0.02)
            self.head.weight = self.wte.weight

    def forward(self, ids, targets):
        x = self.blocks(self.wte(ids) + self.wpe.weight)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def serve(about, step):
    """interleave.py's protocol: prints `about`, then answers "step N" with the milliseconds of N calls of step()."""
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        words = line.split()
        if not words or words[0] == "quit":
            break
        if words[0] != "step" or len(words) != 2 or not words[1].isdigit():
            print(json.dumps({"error": f"expected 'step N' or 'quit', got {line.strip()!r}"}), flush=True)
            continue
        times = []
        for _ in range(int(words[1])):
            begin = time.perf_counter()
            step()
            times.append(round(1e3 * (time.perf_counter() - begin), 3))
        print(json.dumps({"ms": times}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shape", choices=SHAPES, default="block")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    shape = SHAPES[args.shape]
    V, T, B = shape.V, shape.T, shape.B
    model = Decoder(shape)
    adamw = torch.optim.AdamW(model.parameters(), fused=True)
    run = torch.compile(model) if args.compile else model
    text = (V * torch.rand(100_000) ** 2).long()  # skewed like text; the cost does not depend on the ids

    def step():
        starts = torch.randint(0, len(text) - T, (B,))
        window = text[starts[:, None] + torch.arange(T + 1)]
        loss = run(window[:, :-1], window[:, 1:])
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        adamw.step()
        loss.item()  # a training loop reads it

    step()  # compiles, and lets allocators fill
    kind = "compile" if args.compile else "eager"
    serve({"name": f"torch {torch.__version__.split('+')[0]} {kind}", "threads": args.threads,
           "parameters": sum(p.numel() for p in model.parameters())}, step)


if __name__ == "__main__":
    main()
