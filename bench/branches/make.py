#!/usr/bin/env python3
"""Graphs with branches that do not depend on each other.

    make.py WHAT OUT.onnx [--nodes N] [--width N] [--seed N]

    inception_v3  the network of that name, 299 x 299, batch 1
    nasnet        six cells of five blocks; a block adds two of the states before it, each through its own operator
    heads         a trunk and --width (32) unlike heads on it
    chains        --width (64) chains of 4 to 40 steps with unlike costs, no two alike
    dag           --nodes (300) nodes, each of which reads earlier ones at random
"""
import argparse
import pathlib
import random
import sys

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from graphs.net import Net  # noqa: E402

# ---- Inception-v3


def tower(net, x, inside, *layers):
    """layers: (outside, kernel[, stride, pad])."""
    for outside, kernel, *rest in layers:
        x = net.conv(x, inside, outside, kernel, *rest)
        inside = outside
    return x


def inception_a(net, x, inside, pooled):
    return net.add("Concat", [tower(net, x, inside, (64, 1)), tower(net, x, inside, (48, 1), (64, 5)),
                              tower(net, x, inside, (64, 1), (96, 3), (96, 3)),
                              net.conv(net.pool(x, 3, 1, 1, "AveragePool"), inside, pooled, 1)], axis=1), 224 + pooled


def inception_c(net, x, narrow):
    long, high = (1, 7), (7, 1)
    return net.add("Concat", [tower(net, x, 768, (192, 1)),
                              tower(net, x, 768, (narrow, 1), (narrow, long), (192, high)),
                              tower(net, x, 768, (narrow, 1), (narrow, high), (narrow, long), (narrow, high), (192, long)),
                              net.conv(net.pool(x, 3, 1, 1, "AveragePool"), 768, 192, 1)], axis=1)


def inception_e(net, x, inside):
    fork = net.conv(x, inside, 384, 1)
    deep = tower(net, x, inside, (448, 1), (384, 3))
    pairs = [net.conv(source, 384, 384, kernel) for source in (fork, deep) for kernel in ((1, 3), (3, 1))]
    return net.add("Concat", [net.conv(x, inside, 320, 1), *pairs,
                              net.conv(net.pool(x, 3, 1, 1, "AveragePool"), inside, 192, 1)], axis=1)


def inception_v3(o):
    net = Net("inception_v3", o.seed)
    x = tower(net, net.input("x", [1, 3, 299, 299]), 3, (32, 3, 2, 0), (32, 3, 1, 0), (64, 3))
    x = net.pool(tower(net, net.pool(x, 3, 2), 64, (80, 1), (192, 3, 1, 0)), 3, 2)
    inside = 192
    for pooled in (32, 64, 64):
        x, inside = inception_a(net, x, inside, pooled)
    x = net.add("Concat", [net.conv(x, 288, 384, 3, 2, 0), tower(net, x, 288, (64, 1), (96, 3), (96, 3, 2, 0)),
                           net.pool(x, 3, 2)], axis=1)
    for narrow in (128, 160, 160, 192):
        x = inception_c(net, x, narrow)
    x = net.add("Concat", [tower(net, x, 768, (192, 1), (320, 3, 2, 0)),
                           tower(net, x, 768, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, 0)),
                           net.pool(x, 3, 2)], axis=1)
    for inside in (1280, 2048):
        x = inception_e(net, x, inside)
    net.output(net.head(x, 2048, 1000), [1, 1000])
    return net.model()


# ---- cells in the manner of NASNet


def separable(net, x, width, kernel):
    x = net.conv(x, width, width, kernel, group=width, act=None)
    return net.conv(x, width, width, 1)


def block(net, rng, states, width):
    def through(x):
        kind = rng.choice(("separable3", "separable5", "AveragePool", "MaxPool", "itself"))
        if kind.startswith("separable"):
            return separable(net, x, width, int(kind[-1]))
        return x if kind == "itself" else net.pool(x, 3, 1, 1, kind)

    return net.add("Add", [through(rng.choice(states)), through(rng.choice(states))])


def nasnet(o):
    net, rng, width = Net("nasnet", o.seed), random.Random(o.seed), 44
    x = net.conv(net.input("x", [1, 3, 112, 112]), 3, width, 3, 2, 1)
    before = x
    for _ in range(6):
        states = [net.conv(before, width, width, 1), net.conv(x, width, width, 1)]
        for _ in range(5):
            states.append(block(net, rng, states, width))
        before, x = x, net.conv(net.add("Concat", states[2:], axis=1), 5 * width, width, 1)
    net.output(net.head(x, width, 100), [1, 100])
    return net.model()


# ---- heads


def heads(o):
    net, rng = Net("heads", o.seed), random.Random(o.seed)
    x = tower(net, net.input("x", [1, 3, 64, 64]), 3, (32, 3, 2, 1), (64, 3, 2, 1), (64, 3))
    flat = net.add("Flatten", [net.add("GlobalAveragePool", [x])], axis=1)
    for i in range(o.width or 32):
        classes = rng.randrange(2, 200)
        if i % 4 == 3:  # a map
            net.output(net.conv(tower(net, x, 64, (16, 3)), 16, classes, 1, act=None), [1, classes, 16, 16], f"y{i}")
            continue
        hidden = rng.choice((32, 64, 128, 256))
        y = net.dense(net.dense(flat, 64, hidden, rng.choice(("Relu", "Tanh", "Sigmoid"))), hidden, classes)
        net.output(net.add("Softmax", [y], axis=-1) if i % 2 else y, [1, classes], f"y{i}")
    return net.model()


# ---- chains and random graphs: rows x width matrices; weights belong to a pair of widths, so that files stay small

WIDTHS = (64, 128, 256, 512)


def product(net, x, inside, outside):
    name = f"w{inside}x{outside}"
    if name not in net.weights:
        net.weight(name, (inside, outside), (1 / inside)**0.5)
    return net.add("MatMul", [x, name])


def step(net, rng, x, inside):
    """One operator that does not fuse with its like; -> (value, width)."""
    kind = rng.choice(("MatMul", "MatMul", "MatMul", "Softmax", "LogSoftmax", "LpNormalization"))
    if kind != "MatMul":
        return net.add(kind, [x], axis=-1), inside
    outside = rng.choice(WIDTHS)
    return product(net, x, inside, outside), outside


def chains(o):
    net, rng = Net("chains", o.seed), random.Random(o.seed)
    for i in range(o.width or 64):
        rows, width = rng.choice((1, 4, 16, 64)), rng.choice(WIDTHS)
        x = net.input(f"x{i}", [rows, width])
        for _ in range(rng.randint(4, 40)):
            x, width = step(net, rng, x, width)
        net.output(x, [rows, width], f"y{i}")
    return net.model()


def dag(o):
    """Reads go back a little as a rule, far now and then. What nobody reads is an output."""
    net, rng = Net("dag", o.seed), random.Random(o.seed)
    rows = 16
    values = [(net.input(f"x{i}", [rows, width]), width) for i, width in enumerate(WIDTHS)]
    unread = {}
    while len(net.nodes) < o.nodes:
        near = values[-40:] if rng.random() < 0.9 else values
        x, inside = rng.choice(near)
        mates = [v for v, width in near if width == inside and v != x]
        unread.pop(x, None)
        if mates and rng.random() < 0.4:
            y = rng.choice(mates)
            unread.pop(y, None)
            made = net.add(rng.choice(("Add", "Mul", "Max")), [x, y]), inside
        else:
            made = step(net, rng, x, inside)
        values.append(made)
        unread[made[0]] = made[1]
    for i, (name, width) in enumerate(unread.items()):
        net.output(name, [rows, width], f"y{i}")
    return net.model()


MAKERS = {"inception_v3": inception_v3, "nasnet": nasnet, "heads": heads, "chains": chains, "dag": dag}


def make(what, nodes=300, width=0, seed=0):
    return MAKERS[what](argparse.Namespace(nodes=nodes, width=width, seed=seed))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=MAKERS)
    parser.add_argument("out")
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--width", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    o = parser.parse_args()
    onnx.save(make(o.what, o.nodes, o.width, o.seed), o.out)


if __name__ == "__main__":
    main()
