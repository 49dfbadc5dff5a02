# SPDX-License-Identifier: Apache-2.0
"""Goldens of single operations at odd sizes: float32 as PyTorch computes it, and the float64 truth beside it."""
import torch
import torch.nn.functional as F

from golden import normal, save, start

EPS = 1e-5


def record(tensors, name, function, inputs, generator):
    """inputs: float tensors that get gradients. Stores inputs, dy, y, dX of both precisions under name."""
    results = {}
    dy = None
    for kind, dtype in (("", torch.float32), ("_truth", torch.float64)):
        leaves = {key: value.to(dtype, copy=True).requires_grad_() for key, value in inputs.items()}
        y = function(**leaves)
        if dy is None:
            dy = normal(generator, *y.shape) if y.dim() else torch.tensor(1.0)
        y.backward(dy.to(dtype))
        results[f"y{kind}"] = y.detach().float()
        for key, leaf in leaves.items():
            results[f"d{key}{kind}"] = leaf.grad.float()
    results.update({**inputs, "dy": dy})
    tensors.update({f"{name}.{key}": value for key, value in results.items()})
    gap = max((results[k] - results[f"{k}_truth"]).abs().max().item() for k in results if f"{k}_truth" in results)
    print(f"  {name}: largest gap float32 - float64 {gap:.2e}")


def rows(generator, width, scale=1.0):
    return scale * normal(generator, 5, width) + 0.3  # 5 rows, off centre so that means matter


def main():
    generator = start(2)
    tensors = {}
    for width in (1, 17, 130):
        name = f"w{width}"
        gain = {"weight": 1 + 0.3 * normal(generator, width), "bias": 0.3 * normal(generator, width)}
        x = rows(generator, width)
        record(tensors, f"layer_norm.{name}", lambda x, weight, bias: F.layer_norm(x, (width,), weight, bias, EPS),
               {"x": x, **gain}, generator)
        record(tensors, f"rms_norm.{name}", lambda x, weight: F.rms_norm(x, (width,), weight, EPS),
               {"x": x, "weight": gain["weight"]}, generator)
        record(tensors, f"softmax.{name}", lambda x: F.softmax(x, dim=-1), {"x": 3 * x}, generator)
    # from deep in the tails to the middle: erf and tanh lose digits in different places
    steep = torch.cat([torch.linspace(-12, 12, 97), torch.tensor([0.0, -0.0, 1e-6, -1e-6, 1e-30, 40.0, -40.0])])
    record(tensors, "gelu_erf", lambda x: F.gelu(x), {"x": steep}, generator)
    record(tensors, "gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), {"x": steep}, generator)
    record(tensors, "silu", lambda x: F.silu(x), {"x": steep}, generator)
    record(tensors, "relu", lambda x: F.relu(x), {"x": steep}, generator)
    record(tensors, "softmax.large", lambda x: F.softmax(x, dim=-1), {"x": 1e4 + 30 * rows(generator, 33)}, generator)

    vocabulary, count = 61, 11
    targets = torch.randint(0, vocabulary, (count,), generator=generator)
    targets[0], targets[1] = 0, vocabulary - 1
    record(tensors, "cross_entropy", lambda x: F.cross_entropy(x, targets),
           {"x": 2 * normal(generator, count, vocabulary)}, generator)
    record(tensors, "cross_entropy.large", lambda x: F.cross_entropy(x, targets),
           {"x": 200 + 40 * normal(generator, count, vocabulary)}, generator)
    tensors["cross_entropy.targets"] = targets

    ids = torch.tensor([[3, 0, 18, 3, 3], [7, 7, 0, 1, 2], [18, 18, 18, 18, 5]])  # repeats, first and last row
    record(tensors, "embedding", lambda weight: F.embedding(ids, weight), {"weight": normal(generator, 19, 7)}, generator)
    tensors["embedding.ids"] = ids
    save("ops", tensors, "single operations: inputs, dy, float32 results and float64 truth (rounded to float32)")


if __name__ == "__main__":
    main()
