#!/usr/bin/env python3
"""Silent faults of an earlier engine, each as a small model with a known answer.

    run.py PROGRAM [--device D] [NAME ...]

Every case builds a model and its inputs; the answer is computed here by numpy in float64, or by ONNX Runtime without
optimisation where numpy has no such operator. Prints one line for each case that fails.
"""
import argparse
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

CASES = {}


def case(*variants):
    """Registers a builder under its name, once for each tuple of arguments."""
    def register(build):
        for v in variants or [()]:
            words = "-".join(str(x).replace(" ", "") for x in v)
            CASES[f"{build.__name__}{'-' + words if words else ''}"] = lambda v=v: build(*v)
        return build
    return register


def values(*shape, low=-1.0, high=1.0):
    rng = np.random.default_rng(sum(shape))
    return rng.uniform(low, high, shape).astype(np.float32)


def model(nodes, feeds, outputs, constants=None, opset=17, domains=()):
    """Outputs without a shape, no value_info, constants as raw data."""
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
    inputs = [helper.make_tensor_value_info(n, kinds[v.dtype], v.shape) for n, v in feeds.items()]
    outs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    weights = [numpy_helper.from_array(v, n) for n, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "fault", inputs, outs, weights)
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node(op, inputs, output="y", **attributes):
    return helper.make_node(op, inputs.split(" "), output.split(), **attributes)


# ---- moving data

@case((2, 2, 1), (3, 9, 1), (2, 12, 2), (1, 8, 0))
def concat(batch, parts, axis):
    feeds = {f"x{i}": values(batch, 2 + i % 2 if axis == 1 else 3, 4) for i in range(parts)}
    return model([node("Concat", " ".join(feeds), axis=axis)], feeds, ["y"]), feeds, {"y": np.concatenate(list(feeds.values()), axis)}


@case()
def concat_large():
    feeds = {"a": values(1, 32, 440, 440), "b": values(1, 32, 440, 440)}
    return model([node("Concat", "a b", axis=1)], feeds, ["y"]), feeds, {"y": np.concatenate([feeds["a"], feeds["b"]], 1)}


@case()
def split_uneven():
    x = values(5, 3)
    nodes = [node("Split", "x s", "y z", axis=0)]
    return model(nodes, {"x": x}, ["y", "z"], {"s": np.array([2, 3])}), {"x": x}, {"y": x[:2], "z": x[2:]}


@case((0,), (1,), (2,), (-1,))
def gather(axis):
    x, i = values(4, 5, 6), np.array([[3, 0], [-1, 2]])
    return model([node("Gather", "x i", axis=axis)], {"x": x}, ["y"], {"i": i}), {"x": x}, {"y": np.take(x, i, axis)}


@case()
def reshape_minus_one():
    x = values(2, 3, 4)
    return model([node("Reshape", "x s")], {"x": x}, ["y"], {"s": np.array([0, -1])}), {"x": x}, {"y": x.reshape(2, 12)}


@case(([0, 0, 0, 0, 0, 3],), ([0, 1, 2, 0, 0, 5],), ([1, 0, 2, 3, 2, 0],))
def pad(pads):
    x = values(2, 3, 4)
    want = np.pad(x, list(zip(pads[:3], pads[3:])), constant_values=0.5)
    return model([node("Pad", "x p c")], {"x": x}, ["y"], {"p": np.array(pads), "c": np.float32(0.5)}), {"x": x}, {"y": want}


# ---- products

@case((3, 3, 3), (5, 5, 5), (6, 6, 6), (10, 10, 10), (50, 50, 50), (6, 12, 18), (1, 6, 4), (1, 10, 10))
def matmul(m, k, n):
    a, b = values(m, k), values(k, n)
    return model([node("MatMul", "a b")], {"a": a, "b": b}, ["y"]), {"a": a, "b": b}, {"y": a.astype(float) @ b}


@case()
def matmul_stack():
    a, b = values(2, 4, 4), values(4, 4)
    return model([node("MatMul", "a b")], {"a": a, "b": b}, ["y"]), {"a": a, "b": b}, {"y": a.astype(float) @ b}


@case(*itertools.product((0, 1), (0, 1), (5, 2)))
def gemm(ta, tb, n):
    a, b, c = values(4, 3), values(3, n), values(n)
    feeds = {"a": a.T.copy() if ta else a, "b": b.T.copy() if tb else b, "c": c}
    want = 0.5 * (a.astype(float) @ b) + 2 * c
    return model([node("Gemm", "a b c", transA=ta, transB=tb, alpha=0.5, beta=2.0)], feeds, ["y"]), feeds, {"y": want}


# ---- convolutions (ONNX Runtime answers)

@case()
def conv_no_bias():
    x, w = values(1, 5, 9, 7), values(8, 5, 3, 3)
    return model([node("Conv", "x w", pads=[1, 1, 1, 1])], {"x": x}, ["y"], {"w": w}), {"x": x}, None


@case(("strided", 4, 4, 3, 2, 1), ("five", 4, 4, 5, 1, 1), ("grouped", 4, 8, 3, 1, 4), ("odd", 3, 5, 3, 1, 1))
def conv_leaky(_, c, m, k, stride, group):
    x, w, b = values(1, c, 8, 9), values(m, c // group, k, k), values(m)
    nodes = [node("Conv", "x w b", "t", strides=[stride, stride], group=group), node("LeakyRelu", "t", alpha=0.1)]
    return model(nodes, {"x": x}, ["y"], {"w": w, "b": b}), {"x": x}, None


@case(("VALID",), ("SAME_UPPER",), ("SAME_LOWER",))
def conv_auto_pad(mode):
    x, w = values(1, 2, 7, 12), values(3, 2, 3, 4)
    return model([node("Conv", "x w", auto_pad=mode, strides=[2, 3])], {"x": x}, ["y"], {"w": w}), {"x": x}, None


@case()
def conv_two_consumers():
    x, w = values(1, 2, 6, 6), values(4, 2, 3, 3)
    nodes = [node("Conv", "x w", "t"), node("Relu", "t", "r"), node("Add", "t r", "y"), node("Identity", "t", "z")]
    return model(nodes, {"x": x}, ["y", "z"], {"w": w}), {"x": x}, None


@case()
def resnet_stem_batch_32():
    x, w, b = values(32, 3, 56, 56), values(16, 3, 7, 7), values(16)
    nodes = [node("Conv", "x w b", "t", strides=[2, 2], pads=[3, 3, 3, 3]), node("Relu", "t", "r"),
             node("MaxPool", "r", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])]
    return model(nodes, {"x": x}, ["y"], {"w": w, "b": b}), {"x": x}, None


# ---- elementwise

@case()
def clip():
    x = np.linspace(-1, 2, 31).astype(np.float32)
    return (model([node("Clip", "x a b")], {"x": x}, ["y"], {"a": np.float32(0.25), "b": np.float32(0.75)}), {"x": x},
            {"y": np.clip(x, 0.25, 0.75)})


@case()
def softplus():
    x = np.array([-100, -20, -1, 0, 1, 20, 100, 1000], np.float32)
    return model([node("Softplus", "x")], {"x": x}, ["y"]), {"x": x}, {"y": np.logaddexp(0, x.astype(float))}


@case()
def erf():
    x = np.linspace(-4, 4, 401).astype(np.float32)
    return model([node("Erf", "x")], {"x": x}, ["y"]), {"x": x}, {"y": np.array([math.erf(v) for v in x])}


@case()
def tanh():
    x = np.array([-1e30, -200, -50, -1e-6, 0, 1e-6, 50, 89, 200, 1e30], np.float32)
    return model([node("Tanh", "x")], {"x": x}, ["y"]), {"x": x}, {"y": np.tanh(x.astype(float))}


@case()
def power():
    a = np.array([0.5, 1.5, 2, 3, 10, 1e-3, 7, 1.0001], np.float32)
    b = np.array([2, -3, 10, 0.5, -4, 2.5, 0, 5000], np.float32)
    return model([node("Pow", "a b")], {"a": a, "b": b}, ["y"]), {"a": a, "b": b}, {"y": a.astype(float) ** b}


@case((7, 1), (7, 2), (11, 1), (11, -2), (13, 1), (13, 0), (17, 2))
def softmax(opset, axis):
    x = values(2, 3, 4, low=-3, high=3)
    return model([node("Softmax", "x", axis=axis)], {"x": x}, ["y"], opset=opset), {"x": x}, None


@case(*itertools.product(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"), ("nearest", "linear", "cubic")))
def resize(mode, method):
    x, scales = values(1, 2, 6, 7), np.array([1, 1, 1.3333334, 2.7182817], np.float32)
    m = model([node("Resize", "x  s", coordinate_transformation_mode=mode, mode=method)], {"x": x}, ["y"], {"s": scales})
    # align_corners: ONNX Runtime takes the rounded output length, the standard's data the product of length and scale
    want = ReferenceEvaluator(m).run(None, {"x": x})[0]
    return m, {"x": x}, {"y": want}


# ---- files

@case()
def unused_domain():
    x = values(3)
    return model([node("Neg", "x")], {"x": x}, ["y"], domains=("org.example.nothing",)), {"x": x}, {"y": -x}


# ---- running them

DEVICE = []


def braid(program, command, *arguments):
    return subprocess.run([program, command, *map(str, arguments), *DEVICE, "--quiet"], capture_output=True, text=True)


def reference(m, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def run(program, folder, m, feeds):
    (folder / "m.onnx").write_bytes(m.SerializeToString())
    arguments = []
    for name, v in feeds.items():
        np.save(folder / f"{name}.npy", v)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    return braid(program, "run", folder / "m.onnx", *arguments, "--output-dir", folder / "out", "--verify")


def check(program, build):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        m, feeds, want = build()
        done = run(program, folder, m, feeds)
        if done.returncode:
            return f"exit {done.returncode}: {done.stderr.strip()}"
        for out, b in (want or reference(m, feeds)).items():
            a = np.load(folder / "out" / f"{out}.npy")
            if a.shape != b.shape:
                return f"{out}: shape {a.shape}, expected {b.shape}"
            far = np.abs(a.astype(float) - b) / np.maximum(np.abs(b), 1e-1 * max(1e-30, np.abs(b).max(initial=0)))
            if not far.max(initial=0) <= 1e-5:
                return f"{out}: relative error {far.max():.2e}"
    return None


def check_short_input(program):
    """An input file that holds less than the shape needs is refused, not read past its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        m, feeds, _ = CASES["unused_domain"]()
        (folder / "m.onnx").write_bytes(m.SerializeToString())
        (folder / "x.bin").write_bytes(feeds["x"].tobytes()[:-4])
        done = braid(program, "run", folder / "m.onnx", "--input", f"x={folder / 'x.bin'}")
        return None if done.returncode == 4 and "8 raw bytes" in done.stderr else f"exit {done.returncode}: {done.stderr}"


def check_short_bench(program):
    """A run of less than a millisecond is measured."""
    with tempfile.TemporaryDirectory() as name:
        m, _, _ = CASES["unused_domain"]()
        path = pathlib.Path(name, "m.onnx")
        path.write_bytes(m.SerializeToString())
        done = braid(program, "bench", path, "--runs", 20, "--json")
        figures = json.loads(done.stdout) if done.returncode == 0 else {}
        fine = figures.get("runs") == 20 and 0 < figures["wall_p50_ms"] <= figures["wall_p99_ms"]
        return None if fine else f"exit {done.returncode}: {done.stdout}{done.stderr}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device")
    parser.add_argument("names", nargs="*")
    a = parser.parse_args()
    DEVICE.extend(["--device", a.device] if a.device else [])
    todo = {name: lambda p, b=build: check(p, b) for name, build in CASES.items()}
    todo.update(short_input=check_short_input, short_bench=check_short_bench)
    failed = 0
    for name, test in todo.items():
        if a.names and name not in a.names:
            continue
        fault = test(a.program)
        if fault:
            failed += 1
            print(f"FAILED {name}: {fault}", flush=True)
    print(f"{len(a.names) or len(todo)} cases, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
