#!/usr/bin/env python3
"""Writes the backend tests that the onnx package carries as files.

    generate.py DIR

DIR/KIND/TEST/model.onnx and DIR/KIND/TEST/test_data_set_0/{input,output}_N.pb. A stamp file in DIR names the versions
that made it; when it fits, nothing is done.
"""
import pathlib
import shutil
import sys
import time
import warnings

warnings.filterwarnings("ignore")  # numpy's, about the NaNs that some goldens hold

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper
from onnx.backend.test.case.model import collect_testcases
from onnx.backend.test.loader import load_node_model_tests

SHIPPED = pathlib.Path(onnx.backend.test.__file__).parent / "data"
STAMP = f"onnx {onnx.__version__} numpy {np.__version__} format 1\n"
EXPECTED_VERSION = "1.23.2"


def encode(value, info):
    """A test's value as the bytes of its .pb file."""
    kind = info.type.WhichOneof("value")
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    make = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional,
            "map_type": numpy_helper.from_dict}.get(kind)
    if make is None:
        return numpy_helper.from_array(np.asarray(value), info.name).SerializeToString()
    return make(value, info.name).SerializeToString()


def write_generated(folder, case):
    graph = case.model.graph
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for n, sides in enumerate(case.data_sets):
        data = folder / f"test_data_set_{n}"
        data.mkdir()
        for side, values, infos in zip(("input", "output"), sides, (graph.input, graph.output)):
            for i, value in enumerate(values):
                (data / f"{side}_{i}.pb").write_bytes(encode(value, infos[i]))


def write_light(root):
    """The package's image networks come with outputs for the input arange(n) / n."""
    for source in sorted((SHIPPED / "light").glob("*.onnx")):
        data = root / "light" / f"test_{source.stem}" / "test_data_set_0"
        data.mkdir(parents=True)
        shutil.copy(source, data.parent / "model.onnx")
        graph = onnx.load(source).graph
        weights = {t.name for t in graph.initializer}
        for i, port in enumerate(p for p in graph.input if p.name not in weights):
            shape = [d.dim_value or 1 for d in port.type.tensor_type.shape.dim]
            ramp = np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)
            (data / f"input_{i}.pb").write_bytes(
                numpy_helper.from_array(ramp.astype(np.float32), port.name).SerializeToString())
        for i in range(len(graph.output)):
            shutil.copy(SHIPPED / "light" / f"{source.stem}_output_{i}.pb", data / f"output_{i}.pb")


def write_all(root):
    for case in load_node_model_tests():
        write_generated(root / "node" / case.name, case)
    for case in collect_testcases():
        if case.kind == "simple":
            write_generated(root / "simple" / case.name, case)
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        for source in sorted((SHIPPED / kind).glob("*/model.onnx")):
            target = root / kind / source.parent.name
            if not target.exists():
                shutil.copytree(source.parent, target)
    write_light(root)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    stamp = root / "stamp"
    if stamp.exists() and stamp.read_text() == STAMP:
        return
    if onnx.__version__ != EXPECTED_VERSION:
        sys.exit(f"generate.py: onnx {EXPECTED_VERSION} is needed, this is {onnx.__version__}")
    if root.exists() and not stamp.exists() and any(root.iterdir()):
        sys.exit(f"generate.py: {root} holds something else")
    start = time.time()
    fresh = root.with_name(root.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    write_all(fresh)
    (fresh / "stamp").write_text(STAMP)
    shutil.rmtree(root, ignore_errors=True)
    fresh.rename(root)
    count = sum(1 for _ in root.glob("*/*/model.onnx"))
    print(f"{count} tests in {time.time() - start:.1f} s")


main()
