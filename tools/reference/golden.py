# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files: small safetensors under tests/golden/, the same bytes each time for one torch version."""
import pathlib

import numpy
import torch
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
MOST_BYTES = 300_000  # a golden file is read by people's git clones for ever: keep it small


def start(seed: int) -> torch.Generator:
    """One thread, so that PyTorch's own sums come in one order; and a generator for inputs."""
    torch.set_num_threads(1)
    return torch.Generator().manual_seed(seed)


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator)


def save(name: str, tensors: dict, about: str) -> None:
    """float32, float64 and int32 stay what they are; anything torch is detached first."""
    arrays = {}
    for key, value in tensors.items():
        array = value.detach().numpy() if isinstance(value, torch.Tensor) else numpy.asarray(value)
        if array.dtype == numpy.int64:
            array = array.astype(numpy.int32)
        assert array.dtype in (numpy.float32, numpy.float64, numpy.int32), (key, array.dtype)
        assert array.dtype == numpy.int32 or numpy.isfinite(array).all(), f"{name}: {key} is not finite"
        arrays[key] = numpy.ascontiguousarray(array)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.safetensors"
    # one metadata key only: safetensors writes several in random order
    save_file(arrays, path, metadata={"about": f"{about}; torch {torch.__version__.split('+')[0]}"})
    path.chmod(0o644)
    size = path.stat().st_size
    assert size < MOST_BYTES, f"{path}: {size} bytes, {MOST_BYTES} at most; store fewer tensors or split the file"
    print(f"{path.relative_to(FOLDER.parents[1])}: {len(arrays)} tensors, {size} bytes")
