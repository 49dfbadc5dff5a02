# SPDX-License-Identifier: Apache-2.0
"""nn.Transformer between two embeddings and a linear head: padded batches, post- and pre-norm, ten AdamW steps."""
import math
import warnings

import torch
import torch.nn.functional as F
from torch import nn

from golden import normal, save, start

C, HEADS, LAYERS, HIDDEN, SOURCE_V, V = 16, 2, 2, 32, 13, 11
B, S, T, STEPS = 3, 7, 6, 10
PAD, BOS, EOS, FIRST = 0, 1, 2, 3  # ids of tokens that stand for something begin at FIRST
SMOOTHING = 0.1
LENGTHS = ([7, 3, 5], [4, 6, 2])  # of the first batch: sources with their end, targets with their beginning
NORMS = {"post": False, "pre": True}
KEPT_SMOOTH = ("lm_head.weight", "lm_head.bias", "decoder.h.1.crossattention.v_proj.weight", "encoder.wte.weight")

PARTS = {"self_attn": "attn", "multihead_attn": "crossattention", "linear1": "mlp.c_fc", "linear2": "mlp.c_proj",
         "norm1": "ln_1", "norm2": "ln_2"}
DECODER_PARTS = {**PARTS, "norm2": "ln_cross_attn", "norm3": "ln_2"}
TABLES = {"source.weight": "encoder.wte.weight", "target.weight": "decoder.wte.weight",
          "generator.weight": "lm_head.weight", "generator.bias": "lm_head.bias"}


def sinusoidal(length, dtype):
    """PE(t, 2i) = sin(t / 10000^(2i/C)), PE(t, 2i+1) = cos(same)   (length, C)"""
    angle = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(0, C, 2).double() / C)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(length, C).to(dtype)


class Model(nn.Module):
    """The final norms, which nn.Transformer has in both placements, are left out after post-norm layers."""

    def __init__(self, norm_first):
        super().__init__()
        self.source, self.target = nn.Embedding(SOURCE_V, C), nn.Embedding(V, C)
        self.transformer = nn.Transformer(C, HEADS, LAYERS, LAYERS, HIDDEN, dropout=0.0, activation="relu",
                                          batch_first=True, norm_first=norm_first)
        if not norm_first:
            self.transformer.encoder.norm = self.transformer.decoder.norm = None
        self.generator = nn.Linear(C, V)

    def embed(self, table, ids):
        return table(ids) * math.sqrt(C) + sinusoidal(ids.shape[1], table.weight.dtype)

    def forward(self, source, target):
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        return self.generator(self.transformer(
            self.embed(self.source, source), self.embed(self.target, target), tgt_mask=later,
            src_key_padding_mask=source == PAD, tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD))


def bary_names(tensors):
    """The same numbers by the names of bary's checkpoints, where queries, keys and values are apart."""
    out = {}
    for name, value in tensors.items():
        if name in TABLES:
            out[TABLES[name]] = value
            continue
        _, side, *rest = name.split(".")
        if rest[0] == "norm":
            out[f"{side}.ln_f.{rest[1]}"] = value
            continue
        _, layer, part, *leaf = rest
        path = f"{side}.h.{layer}.{(PARTS if side == 'encoder' else DECODER_PARTS)[part]}"
        if leaf[0].startswith("in_proj_"):
            for q, third in zip(("q_proj", "k_proj", "v_proj"), value.chunk(3)):
                out[f"{path}.{q}.{leaf[0].removeprefix('in_proj_')}"] = third
        else:
            out[".".join([path, *leaf])] = value
    return out


def first_weights(generator):
    """PyTorch's own, but embeddings of variance 1/C, and biases and norms that are not 0 and 1."""
    weights = Model(norm_first=True).state_dict()
    weights.update({f"transformer.{side}.norm.{leaf}": torch.full((C,), float(leaf == "weight"))
                    for side in ("encoder", "decoder") for leaf in ("weight", "bias")})
    for name, value in weights.items():
        if name in ("source.weight", "target.weight"):
            weights[name] = normal(generator, *value.shape) / math.sqrt(C)
        elif value.dim() == 1:
            weights[name] = value + 0.1 * normal(generator, *value.shape)
    return weights


def draw(generator, high, *shape):
    return torch.randint(0, high, shape, generator=generator)


def batches(generator):
    """(steps, B, S), (steps, B, T), (steps, B, T): sources, targets from <bos> on, and the next tokens (-1: none)."""
    source, inputs = torch.full((STEPS, B, S), PAD), torch.full((STEPS, B, T), PAD)
    targets = torch.full((STEPS, B, T), -1)
    for step in range(STEPS):
        for b in range(B):
            s = LENGTHS[0][b] if step == 0 else 2 + draw(generator, S - 1, 1).item()
            t = LENGTHS[1][b] if step == 0 else 2 + draw(generator, T - 1, 1).item()
            source[step, b, : s - 1] = FIRST + draw(generator, SOURCE_V - FIRST, s - 1)
            source[step, b, s - 1] = EOS
            words = FIRST + draw(generator, V - FIRST, t - 1)
            inputs[step, b, :t] = torch.cat([torch.tensor([BOS]), words])
            targets[step, b, :t] = torch.cat([words, torch.tensor([EOS])])
    return source, inputs, targets


def cross_entropy(logits, targets, **options):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, **options)


def build(norm, weights, dtype):
    model = Model(NORMS[norm]).to(dtype)
    wanted = model.state_dict()
    model.load_state_dict({key: weights[key].to(dtype) for key in wanted})
    return model


def once(norm, weights, data, dtype):
    """Of the first batch: logits, cross-attention of the last layer, losses and gradients with and without smoothing."""
    model = build(norm, weights, dtype)
    source, inputs, targets = (x[0] for x in data)
    last, seen = model.transformer.decoder.layers[-1].multihead_attn, {}
    watch = last.register_forward_pre_hook(lambda _, args, kwargs: seen.update(args=args, kwargs=kwargs),
                                           with_kwargs=True)
    logits = model(source, inputs)
    watch.remove()
    pattern = last(*seen["args"], **{**seen["kwargs"], "need_weights": True})[1]
    out = {"logits": logits.detach(), "cross": pattern.detach()}
    for suffix, smoothing in (("", 0.0), ("_smooth", SMOOTHING)):
        loss = cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
        grads = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
        out[f"loss{suffix}"] = loss.detach()
        out[f"gradient{suffix}"] = bary_names(dict(zip((n for n, _ in model.named_parameters()), grads)))
    return out


def train(norm, weights, data, dtype):
    """Losses before each of the ten updates, and the final weights."""
    model = build(norm, weights, dtype)
    adamw = torch.optim.AdamW(model.parameters())
    losses = []
    for source, inputs, targets in zip(*data):
        loss = cross_entropy(model(source, inputs), targets, label_smoothing=SMOOTHING)
        adamw.zero_grad()
        loss.backward()
        adamw.step()
        losses.append(loss.item())
    return losses, bary_names({key: p.detach() for key, p in model.named_parameters()})


def largest_gap(a, b):
    """Of all tensors, relative to the largest number of each; a bias of keys has no true gradient and is left out."""
    return max(((a[k] - b[k]).abs().max() / b[k].abs().max()).item() for k in b if "k_proj.bias" not in k)


def results(norm, weights, data):
    own, truth = (once(norm, weights, data, dtype) for dtype in (torch.float32, torch.float64))
    losses32, final32 = train(norm, weights, data, torch.float32)
    losses64, final = train(norm, weights, data, torch.float64)
    initial = bary_names(weights)
    counted = [key for key in final if "k_proj.bias" not in key]
    gap = max((final32[key] - final[key]).abs().max().item() for key in counted)
    moved = math.sqrt(sum((final[key] - initial[key].double()).square().sum().item() for key in counted))
    numbers = {"losses_truth": losses64, "gap": [gap], "moved": [moved],
               "gradient_gap": [largest_gap(own["gradient"], truth["gradient"])]}
    out = {key: torch.tensor(value, dtype=torch.float64) for key, value in numbers.items()}
    out["losses"] = torch.tensor(losses32, dtype=torch.float32)
    for key in ("logits", "cross"):
        out[key], out[f"{key}_truth"] = own[key], truth[key].float()
    for suffix, run in (("", own), ("_truth", truth)):
        out[f"loss{suffix}"] = torch.stack([run["loss"], run["loss_smooth"]])
    for key, value in truth["gradient"].items():
        out[key] = torch.stack([value, final[key]]).float()
    for key in KEPT_SMOOTH:
        out[f"gradient_smooth.{key}"] = truth["gradient_smooth"][key].float()
    print(f"  {norm}: float32 against float64: logits {(own['logits'] - truth['logits']).abs().max():.1e}, gradients "
          f"{out['gradient_gap'].item():.1e} of the largest; loss {losses64[0]:.6f} -> {losses64[-1]:.6f}, gap "
          f"{max(abs(a - b) for a, b in zip(losses32, losses64)):.1e}; weights {gap:.1e}, distance moved {moved:.4f}")
    return {f"{norm}.{key}": value for key, value in out.items()}


def main():
    generator = start(6)
    torch.manual_seed(6)
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    weights = first_weights(generator)
    data = batches(generator)
    tensors = {f"initial.{key}": value for key, value in bary_names(weights).items()}
    tensors.update(zip(("source", "inputs", "targets"), data))
    for norm in NORMS:
        tensors.update(results(norm, weights, data))
    save("transformer", tensors, f"nn.Transformer (d_model {C}, {HEADS} heads, {LAYERS} + {LAYERS} layers, ff {HIDDEN}) "
         f"with embeddings and a head, batches of {B} padded pairs")


if __name__ == "__main__":
    main()
