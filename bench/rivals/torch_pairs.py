#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside bary's other arrangements, by interleave.py's protocol (torch_step.py).

    --what annotated   a training step of The Annotated Transformer's copy recipe with nn.Transformer: 80 pairs of 10 tokens
    --what lstm        a training step of a language model with nn.LSTM: 64 windows of 64 tokens, width 256
    --what beam        1,000 sources through beam search with a cache of keys and values, 20 tokens each
"""
import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn

from torch_step import serve


def sinusoids(n, d):
    angle = torch.arange(n)[:, None] * torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(n, d)


class Pairs(nn.Module):
    """nn.Transformer with its tokens, positions and generator."""

    def __init__(self, V, d, heads, layers, ff, dropout):
        super().__init__()
        self.d = d
        self.source, self.target = nn.Embedding(V, d), nn.Embedding(V, d)
        self.register_buffer("positions", sinusoids(256, d))
        self.body = nn.Transformer(d, heads, layers, layers, ff, dropout, batch_first=True, norm_first=True)
        self.drop, self.head = nn.Dropout(dropout), nn.Linear(d, V)

    def embed(self, table, ids, first=0):
        return self.drop(table(ids) * math.sqrt(self.d) + self.positions[first : first + ids.shape[1]])

    def forward(self, source, target, causal):
        y = self.body(self.embed(self.source, source), self.embed(self.target, target), tgt_mask=causal, tgt_is_causal=True)
        return self.head(y)


class Language(nn.Module):
    def __init__(self, V, C):
        super().__init__()
        self.wte, self.rnn, self.head = nn.Embedding(V, C), nn.LSTM(C, C, batch_first=True), nn.Linear(C, V)

    def forward(self, ids):
        return self.head(self.rnn(self.wte(ids))[0])


def annotated(args):
    B, T, V = 80, 10, 11
    model = Pairs(V, 512, 8, 2, 2048, 0.1)
    adamw = torch.optim.AdamW(model.parameters(), fused=True)
    run = torch.compile(model) if args.compile else model
    causal = nn.Transformer.generate_square_subsequent_mask(T)

    def step():
        source, target = torch.randint(V, (B, T)), torch.randint(V, (B, T + 1))
        logits = run(source, target[:, :-1], causal)
        loss = F.cross_entropy(logits.reshape(-1, V), target[:, 1:].reshape(-1))
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        adamw.step()

    return sum(p.numel() for p in model.parameters()), step


def lstm(args):
    B, T, V, C = 64, 64, 1024, 256
    model = Language(V, C)
    adamw = torch.optim.AdamW(model.parameters(), fused=True)
    run = torch.compile(model) if args.compile else model

    def step():
        ids = torch.randint(V, (B, T + 1))
        logits = run(ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, V), ids[:, 1:].reshape(-1))
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        adamw.step()

    return sum(p.numel() for p in model.parameters()), step


def split(x, heads):
    B, T, C = x.shape
    return x.view(B, T, heads, C // heads).transpose(1, 2)


def project(attention, x, which):
    """Rows of in_proj for queries (0), keys (1) or values (2)."""
    C = x.shape[-1]
    return split(F.linear(x, attention.in_proj_weight[which * C : (which + 1) * C], attention.in_proj_bias[which * C : (which + 1) * C]),
                 attention.num_heads)


def attend(attention, q, k, v, mask=None):
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return attention.out_proj(y.transpose(1, 2).flatten(2))


def beam(args):
    sources, width, tokens, V, together = 1000, 4, 20, 11, args.together
    model = Pairs(V, 64, 4, 2, 256, 0.0).eval()
    layers = model.body.decoder.layers
    lengths = torch.randint(3, 21, (sources,)).tolist()
    texts = [torch.randint(3, V, (n,)) for n in sorted(lengths)]

    def search(some):
        n, S = len(some), max(len(t) for t in some)
        source = torch.zeros(n, S, dtype=torch.long)
        padding = torch.ones(n, S, dtype=torch.bool)
        for i, t in enumerate(some):
            source[i, : len(t)], padding[i, : len(t)] = t, False
        memory = model.body.encoder(model.embed(model.source, source), src_key_padding_mask=padding)
        cross = [(project(l.multihead_attn, memory, 1), project(l.multihead_attn, memory, 2)) for l in layers]
        seen = ~padding[:, None, None, :]
        scores, ids = torch.zeros(n, 1), torch.ones(n, 1, dtype=torch.long)
        cache = [None] * len(layers)
        for t in range(tokens):
            x = model.embed(model.target, ids[:, -1:], t)
            for i, l in enumerate(layers):
                h = l.norm1(x)
                k, v = project(l.self_attn, h, 1), project(l.self_attn, h, 2)
                if cache[i] is not None:
                    k, v = torch.cat([cache[i][0], k], 2), torch.cat([cache[i][1], v], 2)
                cache[i] = (k, v)
                x = x + attend(l.self_attn, project(l.self_attn, h, 0), k, v)
                x = x + attend(l.multihead_attn, project(l.multihead_attn, l.norm2(x), 0), *cross[i], seen)
                x = x + l.linear2(F.relu(l.linear1(l.norm3(x))))
            log_p = F.log_softmax(model.head(model.body.decoder.norm(x))[:, 0], -1)
            log_p[:, :3] = -math.inf
            beams = scores.shape[1]
            best, at = (scores[:, :, None] + log_p.view(n, beams, V)).flatten(1).topk(width, -1)
            rows = (torch.arange(n)[:, None] * beams + at // V).flatten()
            scores = best
            ids = torch.cat([ids[rows], (at % V).flatten()[:, None]], 1)
            cache = [(k[rows], v[rows]) for k, v in cache]
            if t == 0:
                cross = [(k.repeat_interleave(width, 0), v.repeat_interleave(width, 0)) for k, v in cross]
                seen = seen.repeat_interleave(width, 0)
        return ids

    def step():
        with torch.inference_mode():
            for first in range(0, sources, together):
                search(texts[first : first + together])

    return sum(p.numel() for p in model.parameters()), step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=["annotated", "lstm", "beam"], default="annotated")
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--together", type=int, default=1000, help="sources of a batch of beam")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    parameters, step = {"annotated": annotated, "lstm": lstm, "beam": beam}[args.what](args)
    for _ in range(2):
        step()
    serve({"name": "torch " + ("compiled" if args.compile else "eager"), "what": args.what, "version": torch.__version__,
           "threads": args.threads, "parameters": parameters}, step)


if __name__ == "__main__":
    main()
