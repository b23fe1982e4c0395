#!/usr/bin/env python3
"""Runs whole models and compares with ONNX Runtime (optimisation off) or with their own data sets.

    run.py --braid PROGRAM [--device D] [--report FILE] [--models DIR ...] [--folder DIR] [MODEL ...]
    run.py --lanes PROGRAM [--device D] [--seconds N] [--models DIR ...] [--folder DIR] [MODEL ...]
    run.py --list [--models DIR ...]

Models come from the folders --models, the rapidocr package, the folder shared/models beside the repository when it is
there, and from --folder (every .onnx file in it). Right means: no value further off than the tolerance times the largest
magnitude of its output; integers exact. Prints one line per model; exits 77 when none of the named models is there.

--lanes runs them with lanes against each lane alone (lanes.c) instead, or under every plan (plans.c). --list names those
that are there.
"""
import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOAT32, FLOAT16 = 5e-3, 3e-2
NUMPY = {1: np.float32, 2: np.uint8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}

# name: shape of every input that is not fixed; ints: largest integer value; unsupported: exit 3 is right for now
MODELS = {
    "rapidocr/PP-OCRv6_det_small.onnx": dict(shapes={"x": [1, 3, 160, 160]}),
    "rapidocr/PP-OCRv6_rec_small.onnx": dict(shapes={"x": [1, 3, 48, 160]}),
    "rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx": dict(shapes={"x": [1, 3, 48, 192]}),
    "SqueezeNet_fp16.onnx": {},
    "light_resnet50.onnx": dict(fill=True),
    "light_squeezenet.onnx": dict(fill=True),
    "light_shufflenet.onnx": dict(fill=True),
    "mnist_8/model.onnx": dict(data=True),
    "super_resolution_10/model.onnx": dict(data=True),
    "yolox_nano.onnx": dict(high=255),
    "version-RFB-320.onnx": dict(low=-1),
    "yunet_n_dynamic.onnx": dict(shapes={"input": [1, 3, 160, 192]}, high=255),
    "ch_PP-OCRv4_rec_infer.onnx": dict(shapes={"x": [1, 3, 48, 160]}),
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": dict(shapes={"x": [1, 3, 48, 192]}),
    "basic_pitch_nmp.onnx": dict(shapes={"serving_default_input_2:0": [1, 43844, 1]}, low=-1),
    "dtln_model_2.onnx": dict(low=-1),
    "vespa_dummy_transformer_mlm.onnx": dict(ints=1, dims=dict(batch=1, tokens=16)),
    "vespa_random_encoder.onnx": dict(ints=1, dims=dict(batch=1, tokens=12)),
    "vespa_random_decoder.onnx": dict(ints=1, dims=dict(batch=1, target_tokens=7, source_tokens=9)),
    "dtln_model_1.onnx": dict(low=-1, unsupported=True),
    "byte_sb_bidi_lstm/model.onnx": dict(dims=dict(batch=1, length=20), ints=127, unsupported=True),
    "silero_vad_v6.onnx": dict(shapes={"input": [1, 512], "state": [2, 1, 128]}, unsupported=True),
    "mnist_quantized.onnx": dict(unsupported=True),
    "qlstm_3-2-3_T3_S1/model.onnx": dict(shapes={"input": [4, 3]}, unsupported=True),
    "qtdnn_10x5_101_i32_biases/model.onnx": dict(shapes={"input": [21, 10]}, unsupported=True),
    "tiny_random_gpt2_fp32.onnx": dict(dims=dict(batch_size=1, seq_len=3, total_seq_len=5, past_seq_len=2), ints=1,
                                       unsupported=True),
}


def find(name, folders):
    given = [f / part for f in folders for part in (name, name.removeprefix("rapidocr/"))]
    for path in given:
        if path.exists():
            return path
    if name.startswith("rapidocr/"):
        spec = importlib.util.find_spec("rapidocr")
        path = pathlib.Path(spec.submodule_search_locations[0], "models", name[9:]) if spec else None
    else:
        path = next((p / "shared/models" / name for p in ROOT.parents if (p / "shared/models" / name).exists()), None)
    return path if path and path.exists() else None


def real_inputs(model):
    weights = {t.name for t in model.graph.initializer}
    return [v for v in model.graph.input if v.name not in weights]


def filled(model):
    """ConstantOfShape weights become seeded ones of a size that keeps values near 1; the last Softmax goes."""
    graph, rng = model.graph, np.random.default_rng(7)
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    for node in list(graph.node):
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            dims = [int(d) for d in shapes[node.input[0]]]
            fan = int(np.prod(dims[1:])) if len(dims) > 1 else 0
            values = rng.standard_normal(dims) * np.sqrt(2 / fan) if fan else rng.uniform(0.5, 1.5, dims)
            graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
            graph.node.remove(node)
    last = graph.node[-1]
    if last.op_type == "Softmax":
        del graph.output[:]
        graph.output.append(onnx.ValueInfoProto(name=last.input[0]))
        graph.output[0].type.tensor_type.elem_type = 1
        graph.node.remove(last)
    return model


def make_inputs(model, facts):
    rng, feeds = np.random.default_rng(1), {}
    for port in real_inputs(model):
        kind = port.type.tensor_type
        dims = [facts.get("dims", {}).get(d.dim_param, d.dim_value or 1) if d.dim_param else d.dim_value or 1
                for d in kind.shape.dim]
        shape = facts.get("shapes", {}).get(port.name, dims)
        dtype = NUMPY[kind.elem_type]
        if np.issubdtype(dtype, np.floating):
            feeds[port.name] = rng.uniform(facts.get("low", 0), facts.get("high", 1), shape).astype(dtype)
        else:
            feeds[port.name] = rng.integers(0, facts.get("ints", 1) + 1, shape).astype(dtype)
    return feeds


def reference(path, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def worst(got, want):
    """Largest difference relative to the largest magnitude; infinite when the forms differ."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if not np.issubdtype(want.dtype, np.floating):
        return 0.0 if np.array_equal(got, want) else float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    largest = np.nanmax(np.abs(b), initial=0)
    return float(np.nanmax(np.abs(a - b), initial=0) / (largest or 1))


class Runner:
    def __init__(self, program, device):
        self.program, self.device = program, ["--device", device] if device else []

    def call(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments), *self.device, "--quiet"], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr.strip().split("\n")[0]

    def compare(self, path, feeds, tolerance, scratch):
        inputs = []
        for i, (name, value) in enumerate(feeds.items()):
            np.save(scratch / f"{i}.npy", value)
            inputs += ["--input", f"{name}={scratch / f'{i}.npy'}"]
        code, _, message = self.call("run", path, *inputs, "--output-dir", scratch / "out")
        if code:
            return code, message
        far = {name: worst(np.load(scratch / "out" / f"{name.replace('/', '_')}.npy"), value)
               for name, value in reference(path, feeds).items()}
        name = max(far, key=far.get)
        return (0 if far[name] <= tolerance else 1), f"largest error {far[name]:.1e} ({name})"

    def figures(self, path, feeds):
        shapes = [a for name, v in feeds.items() for a in ("--shape", f"{name}={','.join(map(str, v.shape))}")]
        code, text, _ = self.call("bench", path, *shapes, "--warmup", 1, "--seconds", 0.5, "--json")
        return json.loads(text) if code == 0 else {}


def run_model(runner, name, path, facts, with_figures):
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        model = onnx.load(path)
        if facts.get("fill"):
            path = scratch / "model.onnx"
            onnx.save(filled(model), path)
        feeds = make_inputs(model, facts)
        if facts.get("data"):
            code, text, message = runner.call("check", path, path.parent, "--rtol", 1e-3, "--atol", 1e-3)
            message = message or f"{text.count('ok  ')} outputs of its own data sets"
        else:
            half = any(v.dtype == np.float16 for v in feeds.values())
            code, message = runner.compare(path, feeds, facts.get("tolerance", FLOAT16 if half else FLOAT32), scratch)
        figures = runner.figures(path, feeds) if with_figures and code == 0 else {}
    good = code == 0 or (code == 3 and facts.get("unsupported"))
    word = {0: "ok", 1: "MISMATCH", 3: "unsupported"}.get(code, "FAILED")
    print(f"{word:<11} {name}: {message}", flush=True)
    return good, word, message, figures


def lane_options(facts):
    """What lanes.c has to know of a model's inputs."""
    options = [a for name, dims in facts.get("shapes", {}).items() for a in ("--shape", f"{name}={','.join(map(str, dims))}")]
    options += [a for name, n in facts.get("dims", {}).items() for a in ("--dim", f"{name}={n}")]
    return options + [str(a) for key in ("low", "high", "ints") if key in facts for a in (f"--{key}", facts[key])]


def run_lanes(program, path, facts, more):
    with tempfile.TemporaryDirectory() as folder:
        if facts.get("fill"):
            path, given = pathlib.Path(folder, path.name), path
            onnx.save(filled(onnx.load(given)), path)
        code = subprocess.run([program, str(path), *lane_options(facts), *more]).returncode
    return code == 0 or (code == 3 and facts.get("unsupported", False))


def page(rows, device):
    lines = ["# Models", "",
             "Every model tried, written by `tests/models/run.py --report`: against ONNX Runtime without optimisation, "
             f"batch 1, on {device}.", "",
             "| model | result | | host steps | waves | dispatches | wall p50 ms | device p50 ms |",
             "|---|---|---|--:|--:|--:|--:|--:|"]
    for name, word, message, f in rows:
        cells = [f.get(k) for k in ("host_steps", "waves", "dispatches", "wall_p50_ms", "device_p50_ms")]
        lines.append(f"| {name} | {word} | {message.replace('|', '/')} | "
                     + " | ".join("" if c is None else f"{c:.4g}" for c in cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--braid")
    parser.add_argument("--lanes")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--models", dest="where", action="append", default=[], type=pathlib.Path, metavar="DIR")
    parser.add_argument("--seconds")
    parser.add_argument("--device")
    parser.add_argument("--report")
    parser.add_argument("--folder")
    parser.add_argument("models", nargs="*")
    a = parser.parse_args()
    if not a.braid and not a.lanes and not a.list:
        parser.error("--braid, --lanes or --list")
    wanted = [(n, find(n, a.where), f) for n, f in MODELS.items() if not a.models or n in a.models]
    if a.folder:
        wanted += [(p.name, p, {}) for p in sorted(pathlib.Path(a.folder).glob("*.onnx"))]
    wanted = [w for w in wanted if w[1]]
    if a.list:
        print(*(w[0] for w in wanted), sep="\n")
        return 0
    if not wanted:
        print("none of these models is here")
        return 77
    if a.lanes:
        more = [x for name in ("device", "seconds") if getattr(a, name) for x in (f"--{name}", getattr(a, name))]
        results = [run_lanes(a.lanes, path, facts, more) for _, path, facts in wanted]
        print(f"{sum(results)} of {len(results)} models right")
        return 0 if all(results) else 1
    runner, rows, fine = Runner(a.braid, a.device), [], True
    for name, path, facts in wanted:
        good, word, message, figures = run_model(runner, name, path, facts, bool(a.report))
        fine &= good
        rows.append((name, word, message, figures))
    if a.report:
        device = next((r[3]["device"] for r in rows if r[3]), a.device or "the default device")
        pathlib.Path(a.report).write_text(page(rows, device))
    print(f"{sum(r[1] == 'ok' for r in rows)} of {len(rows)} models ok")
    return 0 if fine else 1


sys.exit(main())
