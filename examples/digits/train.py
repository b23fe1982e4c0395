#!/usr/bin/env python3
"""Trains the bundled model and writes everything that is in this folder beside it.

    pip install torch scikit-learn pillow onnx && python train.py

The data is scikit-learn's `digits`: 1,797 handwritten digits of 8 x 8 pixels, 17 gray levels. A quarter of them is held
out; the accuracy on all of the held-out digits goes into accuracy.txt, the first 100 of them become images/*.png, whose
names begin with their number and end with the right answer.
"""
import pathlib
import warnings

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = pathlib.Path(__file__).parent
IMAGES = 100


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))


def shifted(x):
    """Each image moved by up to one pixel: more data from the same digits."""
    moves = torch.randint(-1, 2, (len(x), 2))
    return torch.stack([torch.roll(image, tuple(m.tolist()), (1, 2)) for image, m in zip(x, moves)])


def train(model, x, y):
    optimiser = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 40)
    for _ in range(40):
        for batch in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(shifted(x[batch])), y[batch]).backward()
            optimiser.step()
        schedule.step()
    model.eval()


def export(model):
    """Weights as they are: what the engine folds and fuses is its own business."""
    warnings.filterwarnings("ignore")
    torch.onnx.export(model, torch.zeros(1, 1, 8, 8), HERE / "digits.onnx", dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                      input_names=["image"], output_names=["logits"])


def main():
    torch.manual_seed(1)
    pixels, labels = load_digits(return_X_y=True)
    # 0..16 becomes the 8-bit gray level that the PNG holds, so that training sees what the file gives back
    gray = np.round(pixels.reshape(-1, 1, 8, 8) * 255 / 16).astype(np.uint8)
    train_x, test_x, train_y, test_y = train_test_split(gray, labels, test_size=0.25, stratify=labels, random_state=1)
    model = make_model()
    train(model, torch.tensor(train_x) / 255.0, torch.tensor(train_y))
    with torch.no_grad():
        guesses = model(torch.tensor(test_x) / 255.0).argmax(1).numpy()
    export(model)
    for i in range(IMAGES):
        Image.fromarray(test_x[i, 0], "L").save(HERE / "images" / f"{i:03d}-{test_y[i]}.png")
    (HERE / "64.gray").write_bytes(test_x[:64].tobytes())
    right, shown = int((guesses == test_y).sum()), int((guesses[:IMAGES] == test_y[:IMAGES]).sum())
    (HERE / "accuracy.txt").write_text(f"{right} of {len(test_y)} held-out digits, {shown} of the {IMAGES} images\n")
    print((HERE / "accuracy.txt").read_text(), end="")


main()
