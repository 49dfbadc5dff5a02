# SPDX-License-Identifier: Apache-2.0
"""Goldens of nn.RNN, nn.LSTM, nn.GRU and additive attention, and ten AdamW steps of a small LSTM language model."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from golden import normal, save, start

B, T, C, H = 3, 8, 5, 17
LENGTHS = [8, 1, 5]
KINDS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
V, WIDTH, HIDDEN, BATCH, LENGTH, STEPS = 31, 16, 20, 4, 12, 10


def run(kind, weights, inputs, lengths, dtype):
    """Results and the gradients of sum(y dy) + sum(h dh) + sum(c dc), by name."""
    layers = inputs["h0"].shape[0]
    module = KINDS[kind](C, H, num_layers=layers, batch_first=True).to(dtype)
    module.load_state_dict({key: value.to(dtype) for key, value in weights.items()})
    leaves = {key: inputs[key].to(dtype, copy=True).requires_grad_() for key in ("x", "h0", "c0") if key in inputs}
    first = (leaves["h0"], leaves["c0"]) if kind == "lstm" else leaves["h0"]
    if lengths:
        packed = pack_padded_sequence(leaves["x"], lengths, batch_first=True, enforce_sorted=False)
        y, last = module(packed, first)
        y, _ = pad_packed_sequence(y, batch_first=True, total_length=T)
    else:
        y, last = module(leaves["x"], first)
    out = {"y": y, **dict(zip(("h", "c"), last if kind == "lstm" else (last,)))}
    sum((value * inputs[f"d{key}"].to(dtype)).sum() for key, value in out.items()).backward()
    result = {key: value.detach() for key, value in out.items()}
    result.update({f"grad.{key}": leaf.grad for key, leaf in leaves.items()})
    result.update({f"grad.{key}": p.grad for key, p in module.named_parameters()})
    return result


def layers(tensors, kind, count, lengths, generator):
    name = f"{kind}{count}"
    weights = KINDS[kind](C, H, num_layers=count).state_dict()
    inputs = {"x": normal(generator, B, T, C), "dy": normal(generator, B, T, H)}
    for key in ("h", "c") if kind == "lstm" else ("h",):
        inputs[f"{key}0"] = normal(generator, count, B, H)
        inputs[f"d{key}"] = normal(generator, count, B, H)
    got = run(kind, weights, inputs, lengths, torch.float32)
    truth = run(kind, weights, inputs, lengths, torch.float64)
    tensors.update({f"{name}.{key}": value for key, value in inputs.items()})
    tensors.update({f"{name}.weight.{key}": value for key, value in weights.items()})
    tensors.update({f"{name}.{key}": value for key, value in got.items()})
    tensors.update({f"{name}.{key}_truth": value.float() for key, value in truth.items()})
    print(f"  {name}: largest gap float32 - float64 {max((got[k] - truth[k]).abs().max().item() for k in got):.2e}")


def additive(tensors, generator):
    """Bahdanau's: score_tj = v . tanh(W_q s_t + W_k h_j), context_t = sum_j softmax_j(score_t) h_j."""
    batch, queries, keys, query_width, key_width, width = 2, 4, 6, 7, 9, 21
    inputs = {"s": normal(generator, batch, queries, query_width), "h": normal(generator, batch, keys, key_width),
              "w_q": normal(generator, width, query_width) / math.sqrt(query_width),
              "w_k": normal(generator, width, key_width) / math.sqrt(key_width), "v": normal(generator, width)}
    dy, results = normal(generator, batch, queries, key_width), {}
    for kind, dtype in (("", torch.float32), ("_truth", torch.float64)):
        leaf = {key: value.to(dtype, copy=True).requires_grad_() for key, value in inputs.items()}
        q, k = F.linear(leaf["s"], leaf["w_q"]), F.linear(leaf["h"], leaf["w_k"])
        scores = torch.tanh(q[:, :, None, :] + k[:, None, :, :]) @ leaf["v"]
        context = F.softmax(scores, dim=-1) @ leaf["h"]
        context.backward(dy.to(dtype))
        results.update({f"scores{kind}": scores.detach().float(), f"y{kind}": context.detach().float()})
        results.update({f"grad.{key}{kind}": value.grad.float() for key, value in leaf.items()})
    tensors.update({f"additive.{key}": value for key, value in {**inputs, "dy": dy, **results}.items()})


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(V, WIDTH)
        self.lstm = nn.LSTM(WIDTH, HIDDEN, batch_first=True)
        self.lm_head = nn.Linear(HIDDEN, V)

    def forward(self, ids):
        return self.lm_head(self.lstm(self.wte(ids))[0])


def train(initial, tokens, dtype):
    """Losses before each update, the first gradients, and the final weights."""
    model = LanguageModel().to(dtype)
    model.load_state_dict({key: value.to(dtype) for key, value in initial.items()})
    adamw = torch.optim.AdamW(model.parameters())
    losses, first = [], {}
    for step in range(STEPS):
        x, y = tokens[step, :, :-1], tokens[step, :, 1:]
        loss = F.cross_entropy(model(x).reshape(-1, V), y.reshape(-1))
        adamw.zero_grad()
        loss.backward()
        if step == 0:
            first = {key: p.grad.clone() for key, p in model.named_parameters()}
        adamw.step()
        losses.append(loss.item())
    return losses, first, {key: p.detach() for key, p in model.named_parameters()}


def steps(tensors, generator):
    initial = {key: value.clone() for key, value in LanguageModel().state_dict().items()}
    uniform = torch.rand(STEPS, BATCH, LENGTH + 1, generator=generator)
    tokens = (V * uniform * uniform).long()  # small ids are more frequent, so that there is something to learn
    losses32, _, final32 = train(initial, tokens, torch.float32)
    losses64, first, final = train(initial, tokens, torch.float64)
    gap = max((final32[key] - final[key]).abs().max().item() for key in final)
    moved = math.sqrt(sum((final[key] - initial[key].double()).square().sum().item() for key in final))
    tensors["steps.tokens"] = tokens
    tensors["steps.losses"] = torch.tensor(losses32, dtype=torch.float32)
    tensors["steps.losses_truth"] = torch.tensor(losses64, dtype=torch.float64)
    tensors["steps.gap"] = torch.tensor([gap], dtype=torch.float64)
    tensors["steps.moved"] = torch.tensor([moved], dtype=torch.float64)
    for key in final:
        tensors[f"steps.initial.{key}"] = initial[key]
        tensors[f"steps.final.{key}"] = final[key].float()
        if "weight_hh" in key:
            tensors[f"steps.first_gradient.{key}"] = first[key].float()
    loss_gap = max(abs(a - b) for a, b in zip(losses32, losses64))
    print(f"  steps: loss {losses64[0]:.6f} -> {losses64[-1]:.6f}; float32 against float64: loss {loss_gap:.1e}, "
          f"weights {gap:.1e}; distance moved {moved:.4f}")


def main():
    generator = start(4)
    torch.manual_seed(4)
    tensors = {}
    for kind in KINDS:
        layers(tensors, kind, 1, None, generator)
        layers(tensors, kind, 2, LENGTHS, generator)
    additive(tensors, generator)
    steps(tensors, generator)
    tensors["lengths"] = torch.tensor(LENGTHS)
    save("recurrent", tensors, f"nn.RNN, nn.LSTM, nn.GRU (B {B}, T {T}, C {C}, H {H}), additive attention, ten AdamW "
         "steps of an LSTM language model")


if __name__ == "__main__":
    main()
