#!/usr/bin/env python3
"""Clone graphs: one model, several times in one graph, in disguise.

    make.py MODEL COPIES OUT.onnx [--weights HOW] [--inputs HOW] [--outputs HOW] [--shuffle] [--rename] [--alter]
                                  [--seed N] [--parts DIR]

MODEL is a name (digits mnist mlp cnn20 squeezenet mobilenet_v2) or an .onnx file with one input and one output.

    --weights  shared      one set of initializers
               duplicated  each copy its own, equal bytes under other names
               different   each copy its own values
               one         as duplicated, but one element of one weight differs
    --inputs   own         each copy has a graph input
               same        all copies read one input
               slice       one input with an axis of copies, cut by Slice
               split       the same, cut by one Split
               prefix      the same, halved by a common Mul before it is cut
    --outputs  own         each copy has a graph output
               concat      one output, by Concat
               suffix      the same, then negated
    --shuffle  nodes in a random order that still is topological
    --rename   random names for everything
    --alter    every second copy has one attribute changed
    --parts    also writes DIR/I.onnx, copy I as a model of its own
"""
import argparse
import copy
import pathlib
import random
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from graphs.models import MODELS  # noqa: E402

WEIGHTS, INPUTS, OUTPUTS = "shared duplicated different one", "own same slice split prefix", "own concat suffix"


def attribute(node, name):
    for a in node.attribute:
        if a.name == name:
            return helper.get_attribute_value(a)
    return None


def set_attribute(node, name, value):
    for a in list(node.attribute):
        if a.name == name:
            node.attribute.remove(a)
    node.attribute.append(helper.make_attribute(name, value))


def altered(model):
    """The model with one attribute of one node changed; every shape stays."""
    model = copy.deepcopy(model)
    spread = [n for n in model.graph.node if n.op_type == "Conv" and attribute(n, "kernel_shape") == [3, 3]
              and attribute(n, "pads") == [1] * 4 and attribute(n, "strides") == [1, 1]]
    products = [n for n in model.graph.node if n.op_type == "Gemm"]
    if spread:
        node = spread[len(spread) // 2]
        set_attribute(node, "dilations", [2, 2])
        set_attribute(node, "pads", [2] * 4)
    elif products:
        set_attribute(products[len(products) // 2], "alpha", 0.5)
    else:
        raise SystemExit("make.py: the model has no attribute that can be altered")
    return model


def changed(tensor, how, seed):
    """An initializer's copy: equal, or with other values; integers (shapes, axes) stay."""
    values = numpy_helper.to_array(tensor)
    if values.dtype.kind == "f" and how == "different":
        noise = np.random.default_rng(seed).uniform(0.9, 1.1, values.shape)
        values = (values * noise).astype(values.dtype)
    return numpy_helper.from_array(values, tensor.name)


def one_element(model, seed):
    """Changes one element of the largest float weight."""
    floats = [t for t in model.graph.initializer if numpy_helper.to_array(t).dtype.kind == "f"]
    largest = max(floats, key=lambda t: numpy_helper.to_array(t).size)
    values = numpy_helper.to_array(largest).copy()
    values.flat[seed % values.size] += 1
    largest.CopyFrom(numpy_helper.from_array(values, largest.name))


def part(model, index, how, alter, seed):
    """Copy number `index` as a model of its own, under the original names."""
    model = altered(model) if alter and index % 2 else copy.deepcopy(model)
    if how != "shared":
        tensors = [changed(t, how, [seed, index, k]) for k, t in enumerate(model.graph.initializer)]
        del model.graph.initializer[:]
        model.graph.initializer.extend(tensors)
    if how == "one" and index:
        one_element(model, seed + index)
    return model


def renamed(model, index, keep):
    """Every name but those of `keep` gets the copy's number in front."""
    graph = copy.deepcopy(model.graph)

    def name(old):
        return old if not old or old in keep else f"c{index}/{old}"

    for node in graph.node:
        node.name = name(node.name)
        for names in (node.input, node.output):
            for i, old in enumerate(names):
                names[i] = name(old)
    for thing in (*graph.input, *graph.output, *graph.initializer):
        thing.name = name(thing.name)
    return graph


def port(name, like, dims):
    return helper.make_tensor_value_info(name, like.type.tensor_type.elem_type, dims)


def dims_of(info):
    return [d.dim_value for d in info.type.tensor_type.shape.dim]


class Joined:
    """The graph under construction."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []

    def constant(self, name, values):
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, op, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, outputs[0] + "/make", **attributes))
        return outputs[0]


def join_inputs(joined, graphs, how):
    like = graphs[0].input[0]
    dims, count = dims_of(like), len(graphs)
    if how == "own":
        joined.inputs = [g.input[0] for g in graphs]
        return
    if how != "same" and dims[0] != 1:
        raise SystemExit("make.py: only inputs whose first dimension is 1 can be cut from one")
    joined.inputs = [port("all", like, dims if how == "same" else [count, *dims[1:]])]
    source = "all"
    if how == "same":
        for g in graphs:
            joined.add("Identity", [source], [g.input[0].name])
        return
    if how == "prefix":
        source = joined.add("Mul", [source, joined.constant("half", np.float32(0.5))], ["all/half"])
    if how == "split":
        sizes = joined.constant("sizes", np.ones(count, np.int64))
        joined.add("Split", [source, sizes], [g.input[0].name for g in graphs], axis=0)
        return
    axes = joined.constant("axes", np.array([0], np.int64))
    for i, g in enumerate(graphs):
        ends = [joined.constant(f"c{i}/{what}", np.array([at], np.int64)) for what, at in (("from", i), ("to", i + 1))]
        joined.add("Slice", [source, *ends, axes], [g.input[0].name])


def join_outputs(joined, graphs, how):
    like = graphs[0].output[0]
    if how == "own":
        joined.outputs = [g.output[0] for g in graphs]
        return
    dims = dims_of(like)
    last = joined.add("Concat", [g.output[0].name for g in graphs], ["together"], axis=0)
    if how == "suffix":
        last = joined.add("Neg", [last], ["negated"])
    joined.outputs = [port(last, like, [dims[0] * len(graphs), *dims[1:]])]


def shuffled(nodes, rng):
    """A random topological order."""
    maker = {name: i for i, n in enumerate(nodes) for name in n.output}
    waits = [len({maker[name] for name in n.input if name in maker}) for n in nodes]
    readers = [[] for _ in nodes]
    for i, n in enumerate(nodes):
        for m in {maker[name] for name in n.input if name in maker}:
            readers[m].append(i)
    ready, order = [i for i, w in enumerate(waits) if w == 0], []
    while ready:
        at = rng.randrange(len(ready))
        ready[at], ready[-1] = ready[-1], ready[at]
        i = ready.pop()
        order.append(nodes[i])
        for r in readers[i]:
            waits[r] -= 1
            if waits[r] == 0:
                ready.append(r)
    return order


def disguised(graph, rng):
    """Random names for every value and node but the graph's ports."""
    ports = {p.name for p in (*graph.input, *graph.output)}
    names = {}

    def name(old):
        if not old or old in ports:
            return old
        return names.setdefault(old, f"v{rng.getrandbits(40):010x}")

    for node in graph.node:
        node.name = f"n{rng.getrandbits(40):010x}"
        for list_ in (node.input, node.output):
            for i, old in enumerate(list_):
                list_[i] = name(old)
    for tensor in graph.initializer:
        tensor.name = name(tensor.name)


def clone(model, copies, weights="shared", inputs="own", outputs="own", shuffle=False, rename=False, alter=False,
          seed=0):
    """-> (clone graph, [copy 0, copy 1, ...] as models of their own). Ports are in the order of the copies."""
    for value, known in ((weights, WEIGHTS), (inputs, INPUTS), (outputs, OUTPUTS)):
        if value not in known.split():
            raise SystemExit(f"make.py: '{value}' is none of: {known}")
    rng = random.Random(seed)
    plain = [part(model, i, weights, alter, seed) for i in range(2 if weights == "shared" else copies)]
    parts = [plain[i % 2] if weights == "shared" else plain[i] for i in range(copies)]
    shared = {t.name for t in model.graph.initializer} if weights == "shared" else set()
    graphs = [renamed(p, i, shared) for i, p in enumerate(parts)]
    joined = Joined()
    join_inputs(joined, graphs, inputs)
    for i, g in enumerate(graphs):
        joined.nodes.extend(g.node)
        joined.weights.extend(t for t in g.initializer if i == 0 or t.name not in shared)
    join_outputs(joined, graphs, outputs)
    nodes = shuffled(joined.nodes, rng) if shuffle else joined.nodes
    graph = helper.make_graph(nodes, "clones", joined.inputs, joined.outputs, joined.weights)
    if rename:
        disguised(graph, rng)
    whole = helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=model.ir_version,
                              producer_name="braid bench")
    return whole, parts


def base_model(name):
    return MODELS[name]() if name in MODELS else onnx.load(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("copies", type=int)
    parser.add_argument("out")
    parser.add_argument("--weights", default="shared", choices=WEIGHTS.split())
    parser.add_argument("--inputs", default="own", choices=INPUTS.split())
    parser.add_argument("--outputs", default="own", choices=OUTPUTS.split())
    for flag in ("shuffle", "rename", "alter"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts")
    o = parser.parse_args()
    whole, parts = clone(base_model(o.model), o.copies, o.weights, o.inputs, o.outputs, o.shuffle, o.rename, o.alter,
                         o.seed)
    onnx.save(whole, o.out)
    if o.parts:
        folder = pathlib.Path(o.parts)
        folder.mkdir(parents=True, exist_ok=True)
        for i, p in enumerate(parts):
            onnx.save(p, folder / f"{i}.onnx")


if __name__ == "__main__":
    main()
