#!/usr/bin/env python3
"""Writes models/*.onnx, most without nodes: outputs are inputs. Run by hand; the files are committed."""
import pathlib

from onnx import TensorProto as T, helper

HERE = pathlib.Path(__file__).parent / "models"


def echo(name, *ports):
    values = [helper.make_tensor_value_info(n, t, dims) for n, t, dims in ports]
    model = helper.make_model(helper.make_graph([], name, values, values), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 21)])
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString())


HERE.mkdir(exist_ok=True)
echo("float", ("x", T.FLOAT, [2, "N"]))
echo("types", ("half", T.FLOAT16, [2]), ("brain", T.BFLOAT16, [2]), ("long", T.INT64, [2]), ("flag", T.BOOL, [2]),
     ("byte", T.UINT8, [2]), ("tiny", T.INT8, ["K"]))
echo("text", ("s", T.STRING, [2]))
echo("nchw", ("image", T.FLOAT, [1, 3, 2, 2]))
echo("nhwc", ("image", T.FLOAT, [1, "H", "W", 3]))
echo("bytes", ("image", T.UINT8, [1, 1, "H", "W"]))
echo("names", ("a/b", T.FLOAT, [1]), ("a_b", T.FLOAT, [1]))

unknown = helper.make_graph([helper.make_node("Frobnicate", ["x"], ["y"], "first"), helper.make_node("Relu", ["y"], ["z"]),
                             helper.make_node("Thing", ["z"], ["w"], "second", domain="org.example")], "unknown",
                            [helper.make_tensor_value_info("x", T.FLOAT, [2])],
                            [helper.make_tensor_value_info("w", T.FLOAT, [2])])
(HERE / "unknown.onnx").write_bytes(helper.make_model(unknown, ir_version=10, opset_imports=[
    helper.make_opsetid("", 21), helper.make_opsetid("org.example", 1)]).SerializeToString())


def row(name, *batch):
    """y = x * x + x of rows of three, alone or as a batch."""
    ports = [helper.make_tensor_value_info(n, T.FLOAT, [*batch, 3]) for n in "xy"]
    nodes = [helper.make_node("Mul", ["x", "x"], ["z"]), helper.make_node("Add", ["z", "x"], ["y"])]
    graph = helper.make_graph(nodes, name, ports[:1], ports[1:])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString())


row("row")
row("row1", 1)
row("row4", 4)
row("rowN", "N")

pick = helper.make_graph(
    [helper.make_node("Gather", ["table", "i"], ["y"])], "pick", [helper.make_tensor_value_info("i", T.INT64, [1])],
    [helper.make_tensor_value_info("y", T.FLOAT, [1])], [helper.make_tensor("table", T.FLOAT, [4], [10, 11, 12, 13])])
(HERE / "pick.onnx").write_bytes(helper.make_model(pick, ir_version=10, opset_imports=[
    helper.make_opsetid("", 21)]).SerializeToString())
