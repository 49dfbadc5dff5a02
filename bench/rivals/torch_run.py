#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A whole small training run in PyTorch, for wall time beside `bary train`: nanoGPT's README run on a CPU.

Characters of a text, 4 layers, 4 heads, width 128, windows of 64, 12 sequences a step, 2,000 steps of fused AdamW with
cosine decay, clipping at 1, and every 250 steps the mean loss over 20 batches of each part. Prints one JSON line at the end.

    torch_run.py TEXT            # beside:
    bary train TEXT --tokenizer char --n_layer 4 --block_size 64 --batch_size 12 --max_iters 2000 --eval_interval 250
        --eval_iters 240 --lr_schedule cosine --warmup_iters 100 --beta2 0.99 --weight_decay 0.1 --grad_clip 1
"""
import argparse
import json
import math
import pathlib
import time

import torch

from torch_step import SHAPES, Decoder


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    begin = time.perf_counter()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1337)
    text = args.text.read_text(encoding="utf-8")
    ids = {c: i for i, c in enumerate(sorted(set(text)))}
    data = torch.tensor([ids[c] for c in text])
    parts = {"train": data[: int(0.9 * len(data))], "val": data[int(0.9 * len(data)):]}
    shape = SHAPES["nanogpt"]
    model = Decoder(shape)
    run = torch.compile(model) if args.compile else model
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)

    def batch(part):
        starts = torch.randint(0, len(part) - shape.T, (shape.B,))
        window = part[starts[:, None] + torch.arange(shape.T + 1)]
        return window[:, :-1], window[:, 1:]

    @torch.no_grad()
    def evaluate():
        return {name: sum(run(*batch(part)).item() for _ in range(20)) / 20 for name, part in parts.items()}

    for step in range(args.steps + 1):
        if step % 250 == 0:
            losses = evaluate()
        if step == args.steps:
            break
        done = (step - 100) / (args.steps - 100)
        rate = 1e-3 * (step + 1) / 101 if step < 100 else 1e-4 + 0.5 * (1 + math.cos(math.pi * done)) * 9e-4
        for group in adamw.param_groups:
            group["lr"] = rate
        loss = run(*batch(parts["train"]))
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
    print(json.dumps({"seconds": round(time.perf_counter() - begin, 2), **losses}))


if __name__ == "__main__":
    main()
