# SPDX-License-Identifier: Apache-2.0
"""Ten AdamW steps of a two-block decoder for every norm place and position kind, in float32 and float64."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from golden import save, start

V, C, H, T, B, LAYERS, STEPS = 61, 32, 4, 24, 4, 2, 10
D = C // H
NORMS = ("pre", "post", "none", "parallel")
POSITIONS = ("none", "learned", "sinusoidal", "rotary", "alibi")
KEPT = ("transformer.h.0.attn.q_proj.weight", "transformer.h.0.ln_1.weight", "transformer.h.1.attn.out_proj.bias",
        "transformer.h.1.mlp.c_proj.bias", "lm_head.bias", "transformer.wpe.weight")


def sinusoidal(dtype):
    """PE(t, 2i) = sin(t / 10000^(2i/C)), PE(t, 2i+1) = cos(same)   (T, C)"""
    angle = torch.arange(T, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(0, C, 2).double() / C)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(T, C).to(dtype)


def rotate(x):
    """Channel i pairs with i + D/2 and turns by t * 10000^(-2i/D)   (B, H, T, D)"""
    angle = torch.arange(T, dtype=torch.float64)[:, None] * 10000.0 ** (-2 * torch.arange(D // 2).double() / D)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., : D // 2], x[..., D // 2 :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, position):
        super().__init__()
        self.position = position
        self.q_proj = nn.Linear(C, C, bias=False)
        self.k_proj = nn.Linear(C, C, bias=False)
        self.v_proj = nn.Linear(C, C, bias=False)
        self.out_proj = nn.Linear(C, C)

    def forward(self, x):
        q, k, v = (p(x).view(-1, T, H, D).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        if self.position == "rotary":
            q, k = rotate(q), rotate(k)
        scores = q @ k.transpose(-1, -2) / math.sqrt(D)
        if self.position == "alibi":
            t = torch.arange(T)
            slope = 2.0 ** (-8.0 * torch.arange(1, H + 1).double() / H)
            scores = scores - (slope[:, None, None] * (t[:, None] - t[None, :])).to(x.dtype)
        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.out_proj(y.transpose(1, 2).reshape(-1, T, C))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(C, 4 * C)
        self.c_proj = nn.Linear(4 * C, C)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, norm, position):
        super().__init__()
        self.norm = norm
        self.ln_1 = nn.LayerNorm(C)
        self.attn = Attention(position)
        self.ln_2 = nn.LayerNorm(C)
        self.mlp = Mlp()

    def forward(self, x):
        if self.norm == "pre":
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))
        if self.norm == "post":
            x = self.ln_1(x + self.attn(x))
            return self.ln_2(x + self.mlp(x))
        if self.norm == "none":
            x = x + self.attn(x)
            return x + self.mlp(x)
        n = self.ln_1(x)
        return x + self.attn(n) + self.mlp(n)


class Decoder(nn.Module):
    """Every configuration owns the superset of parameters; one that is not used gets no gradient and never moves."""

    def __init__(self, norm, position):
        super().__init__()
        self.norm, self.position = norm, position
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(V, C),
            "wpe": nn.Embedding(T, C),
            "h": nn.ModuleList(Block(norm, position) for _ in range(LAYERS)),
            "ln_f": nn.LayerNorm(C),
        })
        self.lm_head = nn.Linear(C, V)

    def forward(self, ids):
        x = self.transformer["wte"](ids)
        if self.position == "learned":
            x = x + self.transformer["wpe"].weight
        if self.position == "sinusoidal":
            x = x + sinusoidal(x.dtype)
        for block in self.transformer["h"]:
            x = block(x)
        if self.norm in ("pre", "parallel"):
            x = self.transformer["ln_f"](x)
        return self.lm_head(x)


def train(norm, position, initial, tokens, dtype):
    """Losses before each of the ten updates, the first gradients, and the final weights."""
    model = Decoder(norm, position).to(dtype)
    model.load_state_dict({key: value.to(dtype) for key, value in initial.items()})
    adamw = torch.optim.AdamW(model.parameters())
    losses, first = [], {}
    for step in range(STEPS):
        x, y = tokens[step, :, :-1], tokens[step, :, 1:]
        loss = F.cross_entropy(model(x).reshape(-1, V), y.reshape(-1))
        adamw.zero_grad()
        loss.backward()
        if step == 0:
            first = {key: p.grad.clone() for key, p in model.named_parameters() if p.grad is not None}
        adamw.step()
        losses.append(loss.item())
    return losses, first, {key: p.detach() for key, p in model.named_parameters()}


def main():
    generator = start(3)
    torch.manual_seed(0)
    initial = {key: value.clone() for key, value in Decoder("pre", "learned").state_dict().items()}
    uniform = torch.rand(STEPS, B, T + 1, generator=generator)
    tokens = (V * uniform * uniform).long()  # small ids are more frequent, so that there is something to learn
    save("two_blocks", {**initial, "tokens": tokens},
         f"initial weights (superset of all configurations) and batches (step, B {B}, T + 1 = {T + 1})")

    results = {}
    for norm in NORMS:
        for position in POSITIONS:
            name = f"{norm}.{position}"
            losses32, _, final32 = train(norm, position, initial, tokens, torch.float32)
            losses64, first, final = train(norm, position, initial, tokens, torch.float64)
            gap = max((final32[key] - final[key]).abs().max().item() for key in final)
            moved = math.sqrt(sum((final[key] - initial[key].double()).square().sum().item() for key in final))
            results[f"{name}.losses"] = torch.tensor(losses32, dtype=torch.float32)
            results[f"{name}.losses_truth"] = torch.tensor(losses64, dtype=torch.float64)
            results[f"{name}.moved"] = torch.tensor([moved], dtype=torch.float64)
            results[f"{name}.gap"] = torch.tensor([gap], dtype=torch.float64)
            for key in KEPT:
                if key in first:
                    results[f"{name}.final.{key}"] = final[key].float()
            results[f"{name}.first_gradient.{KEPT[0]}"] = first[KEPT[0]].float()
            loss_gap = max(abs(a - b) for a, b in zip(losses32, losses64))
            print(f"  {name}: loss {losses64[0]:.6f} -> {losses64[-1]:.6f}; float32 against float64: loss {loss_gap:.1e}, "
                  f"weights {gap:.1e}; distance moved {moved:.4f}")
    save("two_blocks_results", results, "losses, final weights and first gradients by norm place and position kind")


if __name__ == "__main__":
    main()
