#!/usr/bin/env python3
"""kernels.py BENCH_MM BENCH_CODE: the kernel benchmarks run, keep to their time and write what they say."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command):
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True, timeout=100).stdout


def products(program, folder):
    """Chosen variants alone, then others for as long as there is time."""
    for lanes, extra in (1, []), (3, ["-f", "-s", 4]):
        start, out = time.monotonic(), folder / "mm.json"
        text = run(program, "-n", "odd", "-l", lanes, "-w", 0, "-m", 0, "-r", 1, "-o", out, *extra)
        sums = r"^odd: chosen [0-9.]+ us, best [0-9.]+ us, [0-9.]+(: [1-4] of 4 products, no time for more)?$"
        assert "WRONG" not in text and re.search(sums, text, re.M), text
        swept = json.loads(out.read_text())
        assert swept["lanes"] == lanes and (extra or len(swept["products"]) == 4), swept
        for product in swept["products"]:
            chosen = product["variants"][0]
            assert chosen["over_chosen"] == 1 and all(v["us"] > 0 and not v["wrong"] for v in product["variants"]), product
            assert extra or len(product["variants"]) == 1 and not product["left_out"], product
        assert time.monotonic() - start < 60, "the bound does not hold"


def pipelines(program, folder):
    """Every pipeline is one line and one module."""
    text = run(program, "-l", 64, "-o", folder, ROOT / "examples/digits/digits.onnx")
    lines = text.splitlines()
    assert lines and all(re.match(r" +[0-9]+ +[0-9]+ words +1 models +[0-9.]+ MFLOP  [a-z]", line) for line in lines), text
    assert any(re.search("mm_fused [0-9x/]+, float32, a k4, b image 1x3x3", line) for line in lines), text
    for i, line in enumerate(lines):
        module = (folder / f"{i}.spv").read_bytes()
        assert len(module) == 4 * int(line.split()[1]) and module[:4] == b"\x03\x02\x23\x07", line


with tempfile.TemporaryDirectory() as scratch:
    products(sys.argv[1], pathlib.Path(scratch))
    pipelines(sys.argv[2], pathlib.Path(scratch))
