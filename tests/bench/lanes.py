#!/usr/bin/env python3
"""bench/lanes: run.py measures, keeps what it has, goes on, and refuses a batch that computes something else; plot.py draws it.

    lanes.py BRAID
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import numpy as np
import onnx
from onnx import helper, numpy_helper

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench/lanes"


def run(*command, code=0):
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def centred(folder):
    """x minus the mean of all of x: as a batch, the same nodes compute another thing. A Reshape names the batch."""
    def port(name):
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4])

    shape = numpy_helper.from_array(np.array([1, 4]), "shape")
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], keepdims=1), helper.make_node("Sub", ["x", "m"], ["d"]),
             helper.make_node("Reshape", ["d", "shape"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "centred", [port("x")], [port("y")], [shape]), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, folder / "mnist_b1_f32.onnx")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        centred(folder)
        out = folder / "lanes.json"
        command = [BENCH / "run.py", sys.argv[1], folder, "--out", out, "--seconds", "0.01", "--lanes", "1,2,...,8,64"]
        spent = run(*command, "--budget", "0", "--models", "digits", code=75)
        assert "digits" in spent.splitlines()[-1], spent
        first = run(*command, "--models", "digits")
        known = json.loads(out.read_text())
        del known["models"][0]["rows"][1:3]
        out.write_text(json.dumps(known))
        assert "digits: already" not in run(*command, "--models", "digits"), "the lanes that are missing are measured"
        second = run(*command)
        assert "digits: already measured" in second and "resnet50_f32.onnx is not there" in second, second
        assert "already" not in first
        models = {m["name"]: m for m in json.loads(out.read_text())["models"]}
        digits, mean = models["digits"]["rows"], models["mnist"]["rows"]
        assert [r["lanes"] for r in digits] == [1, 2, 4, 8, 64], digits
        assert all(r["against"]["difference"] == 0 for r in digits), "digits: lanes and batch differ"
        assert [bool(r["against"]) for r in mean] == [True, False, False, False, False], "another computation was kept"
        free = run(*command, "--free-order", "--models", "digits")
        again = run(*command, "--free-order", "--models", "digits")
        assert "free order" in free and "already measured" in again, (free, again)
        assert "is not there" in run(*command, "--models", "bert", code=77)
        table = run(BENCH / "plot.py", out, folder / "plots")
        assert len(table.splitlines()) == 6 and "| digits |" in table, table
        for picture in ("lanes.svg", "gain.svg"):
            xml.etree.ElementTree.parse(folder / "plots" / picture)


main()
