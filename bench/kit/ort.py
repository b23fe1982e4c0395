#!/usr/bin/env python3
"""ONNX Runtime on the benchmarks' files, from and to host memory: one item, 64 clones in one graph, a batch.

    ort.py RESULTS.json MODEL ... [--files DIR] [--provider WebGpuExecutionProvider] [--seconds S]

Each file in a process of its own; that it does not start, or how it ends, is its row. What RESULTS.json has is not measured
again. Rows are "MODEL/b1", "MODEL/x64", "MODEL/batch".
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time


def files_of(folder, name):
    """kind: (file, items); the batch is a file of its own, or one with a symbol in front."""
    batch = 32 if name == "bert" else 64
    symbol = folder / f"{name}_f32.onnx"
    one = folder / f"{name}_b1_f32.onnx"
    fixed = folder / f"{name}_b{batch}_f32.onnx"
    found = {"b1": (one if one.exists() else symbol, 1), "x64": (folder / f"{name}_x64_f32.onnx", 64),
             "batch": (fixed if fixed.exists() else symbol, batch)}
    return {kind: f for kind, f in found.items() if f[0].exists()}


def measure(path, items, provider, seconds):
    """In the child. Median of runs from and to host memory; the first second is warming up."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options, providers=[provider])
    if session.get_providers()[0] != provider:
        raise RuntimeError(f"{provider} does not start")
    kinds = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}
    feeds = {i.name: np.ones([d if isinstance(d, int) else items for d in i.shape], kinds[i.type])
             for i in session.get_inputs()}
    session.run(None, feeds)
    created, times = time.perf_counter() - start, []
    warm = time.perf_counter() + min(1, seconds)
    end = warm + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feeds)
        if start >= warm:
            times.append(1e3 * (time.perf_counter() - start))
    return {"items": items, "wall_p50_ms": sorted(times)[len(times) // 2], "runs": len(times), "create_s": round(created, 2),
            "version": onnxruntime.__version__, "provider": provider}


def child(o, path, items):
    command = [sys.executable, "-B", __file__, o.results, str(path), "--child", str(items), "--provider", o.provider,
               "--seconds", str(o.seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=o.limit)
    except subprocess.TimeoutExpired:
        return {"items": items, "error": f"no end in {o.limit} s"}
    if done.returncode == 0:
        return json.loads(done.stdout.strip().splitlines()[-1])
    said = done.stderr.strip().splitlines()
    return {"items": items, "error": f"exit code {done.returncode}: {said[-1][:200] if said else ''}"}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results")
    p.add_argument("models", nargs="+")
    p.add_argument("--files", type=pathlib.Path, default=".")
    p.add_argument("--provider", default="WebGpuExecutionProvider")
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--limit", type=float, default=60, help="seconds for each file (60)")
    p.add_argument("--child", type=int, help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.child:
        print(json.dumps(measure(o.models[0], o.child, o.provider, o.seconds)))
        return 0
    path = pathlib.Path(o.results)
    known = json.loads(path.read_text()) if path.exists() else {"rows": {}}
    for name in o.models:
        for kind, (file, items) in files_of(o.files, name).items():
            key = f"{name}/{kind}"
            if "error" in known["rows"].get(key, {"error": ""}):
                known["rows"][key] = child(o, file, items)
                path.with_suffix(".new").write_text(json.dumps(known, indent=1) + "\n")
                os.replace(path.with_suffix(".new"), path)
            row = known["rows"][key]
            print(key, row.get("error") or f"{row['wall_p50_ms']:.3f} ms", flush=True)
    return 0 if any(files_of(o.files, name) for name in o.models) else 77


if __name__ == "__main__":
    sys.exit(main())
