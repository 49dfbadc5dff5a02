# SPDX-License-Identifier: Apache-2.0
"""What bary writes the safetensors package reads, and the other way round, value for value."""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

TOOL = sys.argv[1]


def expected():
    """The tensors that `safetensors_tool write` makes: value i of tensor number n is (i - 3) / 8 + n, exact in halves."""
    shapes = {"wte.weight": (5, 3), "h.0.ln_1.bias": (7,), "scalar": (), "empty": (0, 4), "zürich": (2, 1, 2)}
    out = {}
    for number, name in enumerate(sorted(shapes)):
        count = int(np.prod(shapes[name]))
        values = (np.arange(count, dtype=np.float32) - 3) / 8 + number
        out[name] = values.reshape(shapes[name])
    return out


def read_by_bary(path):
    """name -> (dtype, shape, values as float32), as the tool prints them: one tensor a line, floats as hex bits."""
    text = subprocess.run([TOOL, "read", str(path)], check=True, capture_output=True).stdout.decode()
    out = {}
    for line in text.splitlines():
        name, dtype, shape, values = line.split("\t")
        sizes = tuple(int(size) for size in shape.strip("()").split(",") if size)
        bits = np.array([int(word, 16) for word in values.split()], dtype=np.uint32)
        out[name] = (dtype, sizes, bits.view(np.float32).reshape(sizes))
    return out


def check_bary_writes(folder):
    path = folder / "bary.safetensors"
    subprocess.run([TOOL, "write", str(path)], check=True)
    want = expected()
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"format": "pt", "step": "12"}, file.metadata()
        assert sorted(file.keys()) == sorted(want), file.keys()
        for name, values in want.items():
            got = file.get_tensor(name)
            assert got.dtype == np.float32 and got.shape == values.shape, (name, got.dtype, got.shape)
            assert np.array_equal(got, values), name


def check_bary_reads(folder):
    want = expected()
    for kind, label in ((np.float32, "F32"), (np.float16, "F16"), (np.float64, "F64")):
        path = folder / f"package_{label}.safetensors"
        save_file({name: values.astype(kind) for name, values in want.items()}, path, metadata={"made": "by a test"})
        got = read_by_bary(path)
        assert sorted(got) == sorted(want), got.keys()
        for name, values in want.items():
            assert got[name][:2] == (label, values.shape), (name, got[name][:2])
            assert np.array_equal(got[name][2], values), name
    # Every half, NaN payloads included, against numpy's conversion.
    halves = np.arange(65536, dtype=np.uint32).astype(np.uint16).view(np.float16)
    path = folder / "halves.safetensors"
    save_file({"halves": halves}, path)
    got, truth = read_by_bary(path)["halves"][2], halves.astype(np.float32)
    assert np.array_equal(got.view(np.uint32), truth.view(np.uint32))
    # Mixed types move values off their natural alignment in some writers; here they only change the order.
    save_file({"a": np.ones(3, np.float16), "b": np.full(3, 2, np.float32), "c": np.full(3, 3, np.float64)}, path)
    got = read_by_bary(path)
    assert [float(got[name][2].sum()) for name in "abc"] == [3.0, 6.0, 9.0]


def main():
    with tempfile.TemporaryDirectory() as name:
        check_bary_writes(Path(name))
        check_bary_reads(Path(name))
    print("safetensors files agree both ways")


main()
