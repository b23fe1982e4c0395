"""The models that are cloned, each a function of the batch size, which is baked into the shapes, as exporters do."""
import pathlib

import numpy as np
import onnx

from .net import Net

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"


def digits(batch=1):
    """The bundled example; nothing but its ports names the batch."""
    model = onnx.load(DIGITS)
    for port in (model.graph.input[0], model.graph.output[0]):
        port.type.tensor_type.shape.dim[0].dim_value = batch
    return model


def mnist(batch=1):
    """Two convolutions and a product, 28 x 28."""
    net = Net("mnist")
    x = net.input("x", [batch, 1, 28, 28])
    x = net.pool(net.conv(x, 1, 8, 5), 2, 2)
    x = net.pool(net.conv(x, 8, 16, 5), 3, 3)
    x = net.add("Reshape", [x, net.constant("rows", np.array([batch, 256], np.int64))])
    net.output(net.dense(x, 256, 10), [batch, 10])
    return net.model()


def mlp(batch=1):
    """Eight dense layers of 128."""
    net = Net("mlp")
    x = net.input("x", [batch, 128])
    for _ in range(7):
        x = net.dense(x, 128, 128, "Relu")
    net.output(net.dense(x, 128, 128), [batch, 128])
    return net.model()


def cnn20(batch=1):
    """Twenty small convolutions, 32 x 32."""
    net = Net("cnn20")
    x, inside = net.input("x", [batch, 3, 32, 32]), 3
    for outside, count, stride in ((16, 6, 1), (32, 6, 2), (64, 8, 2)):
        for i in range(count):
            x, inside = net.conv(x, inside, outside, 3, stride if i == 0 else 1), outside
    net.output(net.head(x, 64, 10), [batch, 10])
    return net.model()


def fire(net, x, inside, squeeze, expand):
    x = net.conv(x, inside, squeeze, 1)
    return net.add("Concat", [net.conv(x, squeeze, expand, 1), net.conv(x, squeeze, expand, 3)], axis=1)


def squeezenet(batch=1):
    """SqueezeNet 1.1."""
    net = Net("squeezenet")
    x = net.conv(net.input("x", [batch, 3, 224, 224]), 3, 64, 3, 2, 0)
    inside = 64
    for squeeze in (16, 32, 48, 64):
        if squeeze < 64:
            x = net.pool(x, 3, 2)
        for _ in range(2):
            x, inside = fire(net, x, inside, squeeze, 4 * squeeze), 8 * squeeze
    x = net.add("GlobalAveragePool", [net.conv(x, 512, 1000, 1)])
    net.output(net.add("Flatten", [x], axis=1), [batch, 1000])
    return net.model()


def mobilenet_v2(batch=1):
    net = Net("mobilenet_v2")
    x, inside = net.conv(net.input("x", [batch, 3, 224, 224]), 3, 32, 3, 2, 1, act="Clip"), 32
    for widen, outside, count, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                         (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            stride, wide = first if i == 0 else 1, inside * widen
            y = net.conv(x, inside, wide, 1, act="Clip") if widen > 1 else x
            y = net.conv(y, wide, wide, 3, stride, 1, group=wide, act="Clip")
            y = net.conv(y, wide, outside, 1, act=None)
            x = net.add("Add", [x, y]) if stride == 1 and inside == outside else y
            inside = outside
    net.output(net.head(net.conv(x, 320, 1280, 1, act="Clip"), 1280, 1000), [batch, 1000])
    return net.model()


MODELS = {"digits": digits, "mnist": mnist, "mlp": mlp, "cnn20": cnn20, "squeezenet": squeezenet,
          "mobilenet_v2": mobilenet_v2}
