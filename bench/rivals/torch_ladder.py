#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rungs of the chapter's ladder in PyTorch, for interleave.py beside `bary bench step RUNG --lines`.

    bench/rivals/torch_ladder.py --rung head [--compile]      one rung, as torch_step.py
    bench/rivals/torch_ladder.py --against build/release/bin/bary [--rounds 6] [--out FILE]

The second form measures every rung, bary beside PyTorch eager and compiled, in turns, and prints the time that all rungs
take of the faster PyTorch of each: what share of it bary needs for the whole ladder."""
import argparse
import csv
import dataclasses
import io
import os
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

from torch_step import SHAPES, Attention, Decoder, serve

V, C, T, B = 1024, 128, 128, 64
RUNGS = ["token", "average", "average-positions", "average-added", "head-replacing", "head", "heads", "heads-mlp",
         "block", "two-blocks"]


class Average(nn.Module):
    """The mean over the prefix as one product with the row-normalised lower triangle."""

    def __init__(self):
        super().__init__()
        self.register_buffer("triangle", torch.tril(torch.ones(T, T)) / torch.arange(1, T + 1)[:, None])

    def forward(self, x):
        return self.triangle @ x


class Rung(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.added = name not in ("average", "average-positions", "head-replacing")
        self.wte = nn.Embedding(V, C)
        positions = name not in ("token", "average", "average-added")
        self.wpe = nn.Embedding(T, C) if positions else None
        if name == "token":
            self.mix = None
        elif name.startswith("average"):
            self.mix = Average()
        else:
            many = name.startswith("heads")
            self.mix = Attention(dataclasses.replace(SHAPES["block"], H=4 if many else 1), project=many)
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C)) if name == "heads-mlp" else None
        self.head = nn.Linear(C, V)

    def forward(self, ids, targets):
        x = self.wte(ids)
        if self.wpe is not None:
            x = x + self.wpe.weight
        if self.mix is not None:
            x = x + self.mix(x) if self.added else self.mix(x)
        if self.mlp is not None:
            x = x + self.mlp(x)
        return F.cross_entropy(self.head(x).view(-1, V), targets.reshape(-1))


def rung_process(name, compiled, threads):
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = Decoder(SHAPES[name]) if name in SHAPES else Rung(name)
    adamw = torch.optim.AdamW(model.parameters(), fused=True)
    run = torch.compile(model) if compiled else model
    text = (V * torch.rand(100_000) ** 2).long()

    def step():
        starts = torch.randint(0, len(text) - T, (B,))
        window = text[starts[:, None] + torch.arange(T + 1)]
        loss = run(window[:, :-1], window[:, 1:])
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        adamw.step()
        loss.item()

    step()
    kind = "compile" if compiled else "eager"
    serve({"name": f"torch {torch.__version__.split('+')[0]} {kind}", "threads": threads,
           "parameters": sum(p.numel() for p in model.parameters())}, step)


def whole_ladder(bary, rounds, out):
    """Runs interleave.py for each rung; medians summed over the rungs."""
    here = os.path.dirname(os.path.abspath(__file__))
    mine = f"{sys.executable} {os.path.abspath(__file__)}"
    totals, lines = {"bary": 0.0, "torch": 0.0}, []
    for rung in RUNGS:
        with tempfile.NamedTemporaryFile(suffix=".csv") as steps:
            subprocess.run([sys.executable, os.path.join(here, "interleave.py"), "--rounds", str(rounds), "--steps", "5",
                            "--out", steps.name, f"{bary} bench step {rung} --lines", f"{mine} --rung {rung}",
                            f"{mine} --rung {rung} --compile"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            text = open(steps.name).read()
        rows = list(csv.DictReader(io.StringIO("".join(l + "\n" for l in text.splitlines() if not l.startswith("#")))))
        by_name = {}
        for r in rows:
            by_name.setdefault(r["who"], []).append(float(r["ms"]))
        medians = {name: sorted(v)[len(v) // 2] for name, v in by_name.items()}
        ours = medians.pop("bary")
        theirs = min(medians.values())
        totals["bary"] += ours
        totals["torch"] += theirs
        lines.append((rung, ours, *(medians[k] for k in sorted(medians, reverse=True))))
        print(f"{rung:18} bary {ours:7.1f} ms   eager {lines[-1][2]:7.1f} ms   compiled {lines[-1][3]:7.1f} ms   "
              f"{ours / theirs:.2f} of the faster", flush=True)
    print(f"whole ladder: {totals['bary'] / totals['torch']:.3f} of the time of the faster PyTorch of each rung")
    if out:
        with open(out, "w") as f:
            f.write("rung,bary_ms,torch_eager_ms,torch_compile_ms\n")
            for rung, ours, eager, compiled in lines:
                f.write(f"{rung},{ours},{eager},{compiled}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rung", choices=RUNGS)
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--against", metavar="BARY", help="measure all rungs beside this program")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--out", help="CSV of the medians")
    args = parser.parse_args()
    if args.against:
        whole_ladder(args.against, args.rounds, args.out)
    else:
        rung_process(args.rung or "block", args.compile, args.threads)


if __name__ == "__main__":
    main()
