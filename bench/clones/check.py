#!/usr/bin/env python3
"""Disguised clones give the bits of separate runs, and are recognised.

    check.py BRAID [MODEL ...] [--copies N] [--device D]

Every disguise of clones/make.py, each model (default: digits mlp): one run of the clone graph against a run of each copy
as a model of its own; and every operator of the model is done for all copies at once, or for each half where one is
altered (packs of two may not pay: take 6 copies or more). Prints a line for each graph; exit 1 when a bit differs or
a copy is left out.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from make import base_model, clone, dims_of  # noqa: E402

DISGUISES = [
    {},
    {"weights": "duplicated", "rename": True},
    {"weights": "different", "shuffle": True},
    {"weights": "one"},
    {"shuffle": True, "rename": True, "alter": True},
    {"weights": "different", "shuffle": True, "rename": True, "alter": True, "inputs": "slice", "outputs": "suffix"},
    {"inputs": "split", "outputs": "concat"},
    {"inputs": "prefix", "outputs": "suffix", "weights": "duplicated", "shuffle": True},
    {"inputs": "same", "weights": "different", "outputs": "concat"},
]


def run(o, folder, model, inputs):
    """-> the outputs, in the model's order."""
    out = folder / "out"
    onnx.save(model, folder / "model.onnx")
    command = [o.braid, "run", str(folder / "model.onnx"), "--output-dir", str(out), "-q", "--verify"]
    for port, values in zip(model.graph.input, inputs):
        np.save(folder / f"{len(command)}.npy", values)
        command += ["--input", f"{port.name}={folder}/{len(command)}.npy"]
    subprocess.run(command + (["--device", o.device] if o.device else []), check=True, stdout=subprocess.DEVNULL)
    return [np.load(out / f"{port.name.replace('/', '_')}.npy") for port in model.graph.output]


def packs(o, folder, model):
    """-> for each operator: in packs of how many copies its steps are done, at least."""
    onnx.save(model, folder / "model.onnx")
    command = [o.braid, "profile", str(folder / "model.onnx"), "--json", "-q", "--warmup", "0"]
    done = subprocess.run(command + (["--device", o.device] if o.device else []), check=True, capture_output=True)
    least = {}
    for s in json.loads(done.stdout):
        if s["rows"]:
            least[s["op"]] = min(s["copies"], least.get(s["op"], s["copies"]))
    return least


def recognised(o, folder, base, whole, disguise):
    one, least = packs(o, folder, base), packs(o, folder, whole)
    pack = o.copies // 2 if disguise.get("alter") else o.copies
    return all(least.get(op, 0) >= pack for op in one)


def inputs_of(whole, copies, how, dims):
    """What the clone graph gets, and what each copy gets of it."""
    rng = np.random.default_rng(1)
    given = [rng.standard_normal(dims_of(port), np.float32) for port in whole.graph.input]
    if how in ("own", "same"):
        return given, [given[i % len(given)] for i in range(copies)]
    factor = np.float32(0.5 if how == "prefix" else 1)
    return given, [(given[0][i:i + 1] * factor).reshape(dims) for i in range(copies)]


def check(o, folder, name, disguise):
    base = base_model(name)
    whole, parts = clone(base, o.copies, **disguise)
    how = disguise.get("inputs", "own")
    given, each = inputs_of(whole, o.copies, how, dims_of(base.graph.input[0]))
    got = run(o, folder, whole, given)
    wanted = [run(o, folder, p, [x])[0] for p, x in zip(parts, each)]
    if disguise.get("outputs", "own") != "own":
        wanted = [np.concatenate(wanted) * np.float32(-1 if disguise["outputs"] == "suffix" else 1)]
    assert len(got) == len(wanted) and all(a.shape == b.shape for a, b in zip(got, wanted))
    equal = all(a.tobytes() == b.tobytes() for a, b in zip(got, wanted))
    packed = recognised(o, folder, base, whole, disguise)
    print(f"{name} x{o.copies} {' '.join(f'{k}={v}' for k, v in disguise.items()) or 'plain'}:",
          "equal" if equal else "DIFFERENT", "recognised" if packed else "NOT RECOGNISED", flush=True)
    return equal and packed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("braid")
    parser.add_argument("models", nargs="*", default=["digits", "mlp"])
    parser.add_argument("--copies", type=int, default=6)
    parser.add_argument("--device", default="")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = [check(o, pathlib.Path(folder), name, d) for name in o.models or ["digits", "mlp"] for d in DISGUISES]
    print(f"{sum(results)} of {len(results)} graphs are right")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
