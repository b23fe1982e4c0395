#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: tiny models that touch every part of the reader. Needs the onnx package.
Usage: make_corpus.py FOLDER (FOLDER/onnx, FOLDER/tensor and FOLDER/npy are filled; FOLDER/plan and FOLDER/graph hold
what the fuzzer kept)."""
import io
import sys
from pathlib import Path

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

F, I = TensorProto.FLOAT, TensorProto.INT64


def value(name, shape, kind=F):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, hints=(), functions=(), sparse=(), extra=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers), value_info=list(hints),
                              sparse_initializer=list(sparse))
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in extra]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


def reference(name, refers, kind):
    attribute = AttributeProto(name=name, ref_attr_name=refers, type=kind)
    return attribute


def models():
    node, const = helper.make_node, numpy_helper.from_array
    w = const(np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2), "w")
    yield "conv", model([node("Conv", ["x", "w"], ["c"], pads=[1, 1, 0, 0], name="conv"), node("Relu", ["c"], ["y"])],
                        [value("x", ["N", 1, 4, 4])], [value("y", ["N", 2, 4, 4])], [w], hints=[value("c", None)])
    yield "shape_chain", model(
        [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Unsqueeze", ["n", "axes"], ["u"]),
         node("Concat", ["u", "rest"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"])],
        [value("x", ["N", 2, 3])], [value("y", ["N", 6])],
        [const(np.array(0), "zero"), const(np.array([0]), "axes"), const(np.array([-1]), "rest")])
    branch = lambda name, op: helper.make_graph([node(op, ["x"], [name])], name, [], [value(name, [2])])
    yield "if", model([node("If", ["c"], ["y"], then_branch=branch("a", "Relu"), else_branch=branch("b", "Neg"))],
                      [value("c", [], TensorProto.BOOL), value("x", [2])], [value("y", [2])])
    body = helper.make_graph([node("Add", ["s", "x"], ["t"]), node("Identity", ["k"], ["go"])], "body",
                             [value("i", [], I), value("k", [], TensorProto.BOOL), value("s", [2])],
                             [value("go", [], TensorProto.BOOL), value("t", [2])])
    yield "loop", model([node("Loop", ["m", "", "x"], ["y"], body=body)], [value("x", [2])], [value("y", [2])],
                        [const(np.array(3), "m")])
    leaky = node("LeakyRelu", ["p"], ["q"])
    leaky.attribute.append(reference("alpha", "slope", AttributeProto.FLOAT))
    function = helper.make_function("local", "F", ["p"], ["q"], [leaky], [helper.make_opsetid("", 17)], [],
                                    [helper.make_attribute("slope", 0.5)])
    yield "function", model([node("F", ["x"], ["t"], domain="local", slope=0.25), node("F", ["t"], ["y"], domain="local")],
                            [value("x", [2])], [value("y", [2])], functions=[function], extra=["local"])
    sparse = helper.make_sparse_tensor(const(np.array([1, 2], np.float32), "d"), const(np.array([0, 3]), "i"), [4])
    yield "sparse", model([node("Add", ["x", "d"], ["y"])], [value("x", [4])], [value("y", [4])], sparse=[sparse])
    constants = [node("Constant", [], ["a"], value_float=1.0), node("Constant", [], ["b"], value_ints=[1, 2]),
                 node("Constant", [], ["c"], value_strings=["p", "q"]), node("Constant", [], ["e"], value=const(np.eye(2)))]
    yield "constants", model(constants, [], [value(n, None) for n in "abce"])
    for opset in (1, 6, 8, 10, 12, 13, 18, 21):
        softmax = node("Softmax", ["x"], ["t"], axis=1)
        nodes = [softmax, node("Squeeze", ["t"], ["y"], axes=[0]) if opset < 13 else node("Squeeze", ["t", "axes"], ["y"])]
        yield f"opset{opset}", model(nodes, [value("x", [1, 2, 3])], [value("y", [2, 3])],
                                     [] if opset < 13 else [const(np.array([0]), "axes")], opset)
    yield "old_slice", model([node("Slice", ["x"], ["y"], starts=[0], ends=[1], axes=[0])], [value("x", [2])],
                             [value("y", [1])], opset=9)
    yield "lstm", model([node("LSTM", ["x", "w", "r"], ["", "y"], hidden_size=1)], [value("x", [2, 1, 1])],
                        [value("y", [1, 1, 1])], [const(np.ones((1, 4, 1), np.float32), "w"), const(np.ones((1, 4, 1), np.float32), "r")])
    yield "resize", model([node("Resize", ["x", "", "s"], ["y"], mode="linear")], [value("x", [1, 1, 2, 2])],
                          [value("y", None)], [const(np.array([1, 1, 2, 1.5], np.float32), "s")])
    yield "einsum", model([node("Einsum", ["x", "x"], ["y"], equation="ij,kj->ik")], [value("x", ["N", 2])], [value("y", None)])
    yield "pad_topk", model([node("Pad", ["x", "p"], ["t"], mode="reflect"), node("TopK", ["t", "k"], ["y", "z"])],
                            [value("x", [3])], [value("y", None), value("z", None, I)],
                            [const(np.array([1, 1]), "p"), const(np.array([2]), "k")])


def tensors():
    for kind in range(1, 27):
        count = 3
        try:
            if kind == TensorProto.STRING:
                yield f"string", helper.make_tensor("t", kind, [count], [b"a", b"", b"bc"])
                continue
            values = [1, 0, 1]
            yield f"typed{kind}", helper.make_tensor("t", kind, [count], values)
        except Exception:
            pass
    yield "raw", numpy_helper.from_array(np.arange(6, dtype=np.int16).reshape(2, 3), "r")


def arrays():
    """Files of numpy's two containers; an archive's member is x."""
    for name, array in (("f4", np.arange(6, dtype="<f4").reshape(2, 3)), ("i8", np.array(7)), ("b1", np.array([True, False])),
                        ("c16", np.array([1 + 2j])), ("fortran", np.asfortranarray(np.ones((2, 3), "<f2"))),
                        ("text", np.array(["p", "\u00e9\u4e00", ""])), ("bytes", np.array([b"pq", b""])),
                        ("empty", np.zeros((0, 3), "<u2"))):
        for version in (1, 0), (2, 0), (3, 0):
            out = io.BytesIO()
            np.lib.format.write_array(out, array, version)
            yield f"{name}_{version[0]}", out.getvalue()
    for name, save in (("stored", np.savez), ("deflated", np.savez_compressed)):
        out = io.BytesIO()
        save(out, x=np.arange(4, dtype="<i4"))
        yield name, out.getvalue()


def main():
    for name, make in (("onnx", models), ("tensor", tensors)):
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for stem, message in make():
            (folder / stem).write_bytes(message.SerializeToString(deterministic=True))
    folder = Path(sys.argv[1]) / "npy"
    folder.mkdir(parents=True, exist_ok=True)
    for stem, data in arrays():
        (folder / stem).write_bytes(data)
    for stem, message in tensors():
        (folder / f"pb_{stem}").write_bytes(message.SerializeToString(deterministic=True))


main()
