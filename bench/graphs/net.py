"""Builds ONNX graphs node by node. Weights are seeded by the net's seed and their own name, so that a model is the same
bytes wherever it is made."""
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8


class Net:
    def __init__(self, name, seed=0):
        self.name, self.seed = name, seed
        self.nodes, self.weights, self.inputs, self.outputs = [], {}, [], []

    def random(self, name):
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def input(self, name, dims, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def output(self, source, dims, name="y", kind=TensorProto.FLOAT):
        """The value `source`, which one node of this net makes, becomes the output `name`."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, old in enumerate(names):
                    if old == source:
                        names[i] = name
        self.outputs.append(helper.make_tensor_value_info(name, kind, dims))

    def constant(self, name, values):
        self.weights[name] = np.asarray(values)
        return name

    def weight(self, name, shape, deviation):
        """Uniform values of mean 0."""
        spread = deviation * 3**0.5
        return self.constant(name, self.random(name).uniform(-spread, spread, shape).astype(np.float32))

    def add(self, op, inputs, outputs=1, **attributes):
        """The node's output, or a list of them when it has several."""
        name = f"{op.lower()}{len(self.nodes)}"
        results = [name] if outputs == 1 else [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, results, name, **attributes))
        return results[0] if outputs == 1 else results

    def conv(self, x, inside, outside, kernel, stride=1, pad=None, group=1, act="Relu"):
        """kernel: a number or (height, width); pad None keeps the size (at stride 1)."""
        name = f"conv{len(self.nodes)}"
        high, wide = (kernel, kernel) if isinstance(kernel, int) else kernel
        pads = [high // 2, wide // 2] * 2 if pad is None else [pad] * 4
        w = self.weight(f"{name}.w", (outside, inside // group, high, wide), (2 / (inside // group * high * wide))**0.5)
        b = self.weight(f"{name}.b", (outside,), 0.05)
        y = self.add("Conv", [x, w, b], kernel_shape=[high, wide], strides=[stride, stride], pads=pads,
                     dilations=[1, 1], group=group)
        if act == "Clip":
            return self.add("Clip", [y, self.constant("low", np.float32(0)), self.constant("high", np.float32(6))])
        return self.add(act, [y]) if act else y

    def pool(self, x, kernel, stride, pad=0, op="MaxPool"):
        return self.add(op, [x], kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4)

    def dense(self, x, inside, outside, act=None):
        name = f"dense{len(self.nodes)}"
        w = self.weight(f"{name}.w", (outside, inside), (1 / inside)**0.5)
        y = self.add("Gemm", [x, w, self.weight(f"{name}.b", (outside,), 0.05)], transB=1)
        return self.add(act, [y]) if act else y

    def head(self, x, inside, outside):
        """Global average, then a dense layer."""
        x = self.add("Flatten", [self.add("GlobalAveragePool", [x])], axis=1)
        return self.dense(x, inside, outside)

    def model(self):
        weights = [numpy_helper.from_array(a, name) for name, a in self.weights.items()]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
                                 producer_name="braid bench")
