#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's training step of the one-block model, driven line by line so that it can alternate with bary.

Reads "step N" from standard input, runs N training steps and prints one JSON line {"ms": [...], "loss": ...}; "quit" or
the end of input ends it. The first line printed says what it is. Model: V 1024, C 128, 4 heads, T 128, B 64, pre-norm, learned
positions, GELU (erf) MLP x4, untied head with bias, no q/k/v bias; fused AdamW, scaled_dot_product_attention.
"""
import argparse
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

V, C, H, T, B = 1024, 128, 4, 128, 64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(C, 3 * C, bias=False)  # one product for the three, as a fast implementation has it
        self.out_proj = nn.Linear(C, C)

    def forward(self, x):
        q, k, v = (t.view(x.shape[0], T, H, C // H).transpose(1, 2) for t in self.qkv(x).split(C, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, C), nn.Embedding(T, C)
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.ln_f = nn.LayerNorm(C)
        self.head = nn.Linear(C, V)

    def forward(self, ids, targets):
        x = self.blocks(self.wte(ids) + self.wpe.weight)
        return F.cross_entropy(self.head(self.ln_f(x)).view(-1, V), targets.reshape(-1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=1)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = Decoder(args.layers)
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
        return loss.item()

    step()  # compiles, and lets allocators fill
    kind = "compile" if args.compile else "eager"
    print(json.dumps({"name": f"torch {torch.__version__.split('+')[0]} {kind}", "threads": args.threads,
                      "parameters": sum(p.numel() for p in model.parameters())}), flush=True)
    for line in sys.stdin:
        words = line.split()
        if not words or words[0] == "quit":
            break
        if words[0] != "step" or len(words) != 2 or not words[1].isdigit():
            print(json.dumps({"error": f"expected 'step N' or 'quit', got {line.strip()!r}"}), flush=True)
            continue
        times, loss = [], float("nan")
        for _ in range(int(words[1])):
            begin = time.perf_counter()
            loss = step()
            times.append(round(1e3 * (time.perf_counter() - begin), 3))
        print(json.dumps({"ms": times, "loss": loss}), flush=True)


if __name__ == "__main__":
    main()
