#!/usr/bin/env python3
"""Measures lanes: 1 to 256 inferences in one run of a file whose batch is 1, and the same work as a true batch.

    run.py BRAID FOLDER ... --out lanes.json [--device D] [--lanes 1,2,4,...,256] [--models digits,mnist]
           [--seconds S] [--budget S] [--free-order]

The FOLDERs hold the models by the names below; what is not there is left out. Each model is a few `braid bench --json`.
Results are saved after a few numbers of lanes, and what the file already has is not measured again, so that a run which
ends at its budget (seconds, for all models together) is continued by the same command. Batch files that no folder has
are made from the batch-1 files where `onnx` is installed; a batch that computes other values than the lanes is not kept.
--free-order adds 64 lanes with that option instead. Exit code: 1 when a model failed, 75 when the budget ended, 77 when
no model is there.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# name, title, file of one inference with its options, file of a batch (None: made from the first), most lanes
MODELS = [
    ("digits", "digits", "digits.onnx", [], None, 256),
    ("mnist", "MNIST", "mnist_b1_f32.onnx", [], None, 256),
    ("cnn20", "cnn20", "cnn20_b1_f32.onnx", [], "cnn20_f32.onnx", 256),
    ("squeezenet", "SqueezeNet", "squeezenet_b1_f32.onnx", [], "squeezenet_f32.onnx", 256),
    ("dtln_2", "DTLN, second model", "dtln_model_2.onnx", [], None, 256),
    ("yolox_nano", "YOLOX-nano", "yolox_nano.onnx", [], None, 256),
    ("ppocr_rec", "PP-OCRv4 rec, 48 x 320", "ch_PP-OCRv4_rec_infer.onnx", ["--shape", "x=1,3,48,320"],
     "ch_PP-OCRv4_rec_infer.onnx", 128),
    ("mobilenet_v2", "MobileNet-v2", "mobilenet_v2_f32.onnx", ["--dim", "N=1"], "mobilenet_v2_f32.onnx", 256),
    ("resnet50", "ResNet-50", "resnet50_f32.onnx", ["--dim", "N=1"], "resnet50_f32.onnx", 128),
    ("bert", "BERT-base, 128 tokens", "bert_f32.onnx", ["--dim", "N=1"], "bert_f32.onnx", 64),
]
WRONG = 0.02  # a batch whose values differ by more, relative to the largest, is another computation


def find(folders, name):
    return next((f / name for f in folders if (f / name).is_file()), None)


def make_batch(source, to):
    """The model with N in place of the batch of 1; what has no such place stays as it is."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(source)
    graph = model.graph
    constants = {t.name: t for t in graph.initializer}
    constants |= {n.output[0]: n.attribute[0].t for n in graph.node if n.op_type == "Constant" and n.attribute[0].name == "value"}
    for port in [p for p in graph.input if p.name not in constants] + list(graph.output):
        dims = port.type.tensor_type.shape.dim
        if dims and dims[0].dim_value == 1:
            dims[0].dim_param = "N"
    del graph.value_info[:]
    for node in graph.node:
        shape = constants.get(node.input[1]) if node.op_type == "Reshape" else None
        if shape is None or node.input[0] in constants:
            continue
        dims = numpy_helper.to_array(shape).copy()
        if len(dims) and dims[0] == 1:
            dims[0] = 0 if -1 in dims else -1
            shape.CopyFrom(numpy_helper.from_array(dims, shape.name))
    onnx.save(model, to)
    return to


def batch_file(folders, row, one, scratch):
    if row[4]:
        return find(folders, row[4])
    try:
        return make_batch(one, scratch / f"{row[0]}_batch.onnx")
    except ImportError:
        return None


def numbers(text, most):
    """1,2,4,...,256 up to `most`, as bench understands it."""
    out, parts = [], text.split(",")
    for i, part in enumerate(parts):
        if part == "...":
            factor, last = out[-1] // out[-2], int(parts[i + 1])
            while out[-1] * factor < last:
                out.append(out[-1] * factor)
        else:
            out.append(int(part))
    return [n for n in out if n <= most] or out[:1]


class Ended(Exception):
    """The budget is spent."""


def bench(args, row, one, end, lanes, *more):
    """The rows of one model, or why there are none."""
    command = [args.braid, "bench", str(one), "-n", ",".join(map(str, lanes)), "--json", "-q", "--warmup", "2", "--seconds",
               str(args.seconds)] + row[3] + (["--device", args.device] if args.device else []) + list(more)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(end - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        raise Ended from None
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
    rows = json.loads(done.stdout)
    return rows if isinstance(rows, list) else [rows], None


def checked(row, r, batch):
    """A measured point; without a batch that computes something else."""
    other = r.get("against")
    if other and (other["difference"] is None or other["difference"] > WRONG):
        r["against"] = None
    if r.get("against"):
        r["against"]["model"] = pathlib.Path(batch).name
    return r | {"model": row[2]}


def groups(lanes):
    """Those that run by one plan go together: a sweep that is cut short keeps its groups."""
    found = [[n for n in lanes if least < n <= most] for least, most in ((0, 1), (1, 8), (8, 64), (64, 512))]
    return [g for g in found if g]


def missing_lanes(args, row, model):
    have = {r["lanes"] for r in (model or {}).get("rows", [])}
    return [n for n in numbers(args.lanes, row[5]) if n not in have]


def measure(args, row, found, one, batch, end, keep):
    """Adds to `found`, which is kept after each group."""
    for lanes in groups(missing_lanes(args, row, found)):
        if end - time.monotonic() < 2:
            raise Ended
        start = time.monotonic()
        rows, error = bench(args, row, one, end, lanes, *(["--against", str(batch)] if batch else []))
        if error and batch:  # perhaps only the batch cannot run
            print(f"  as a batch: {error}", flush=True)
            rows, error = bench(args, row, one, end, lanes)
        if error:
            found["error"] = error
            return
        found["rows"] = sorted(found.get("rows", []) + [checked(row, r, batch) for r in rows], key=lambda r: r["lanes"])
        found["seconds"] = round(found.get("seconds", 0) + time.monotonic() - start, 1)
        keep(found)


def measure_free(args, row, found, one, end):
    rows, error = bench(args, row, one, end, [64], "--free-order")
    found["free_order"] = {"error": error} if error else rows[0]


def is_done(args, row, model):
    if args.free_order:
        return "error" not in (model or {}).get("free_order", {"error": ""})
    return model is not None and "error" not in model and not missing_lanes(args, row, model)


def go_on(args, row, known, one, folders, end, keep):
    """What is known of a model and what this call adds; -> the error, if any."""
    found = {k: v for k, v in (known or {}).items() if k != "error"} | {"name": row[0], "title": row[1]}
    if args.free_order:
        measure_free(args, row, found, one, end)
        error = found["free_order"].get("error")
    else:
        with tempfile.TemporaryDirectory() as scratch:
            measure(args, row, found, one, batch_file(folders, row, one, pathlib.Path(scratch)), end, keep)
        error = found.get("error")
    keep(found)
    print(f"{row[0]}: {error or ('free order' if args.free_order else str(found['seconds']) + ' s')}", flush=True)
    return error


def save(path, results):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".part").write_text(json.dumps(results, indent=1) + "\n")
    path.with_suffix(".part").replace(path)


def load(path):
    return json.loads(path.read_text()) if path.is_file() else {"models": []}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("braid")
    p.add_argument("folders", nargs="+", type=pathlib.Path)
    p.add_argument("--out", type=pathlib.Path, default="lanes.json")
    p.add_argument("--device")
    p.add_argument("--lanes", default="1,2,4,...,256")
    p.add_argument("--models", default="")
    p.add_argument("--seconds", type=float, default=0.3, help="of each point (default 0.3)")
    p.add_argument("--free-order", action="store_true")
    p.add_argument("--budget", type=float, default=200, help="of all models (default 200)")
    args = p.parse_args()
    end = time.monotonic() + args.budget
    results = load(args.out)
    folders = args.folders + [ROOT / "examples/digits"]
    version = subprocess.run([args.braid, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    results |= {"date": datetime.date.today().isoformat(), "braid": version}
    there, failed, missing = 0, 0, []

    def keep(found):
        results["models"] = [m for m in results["models"] if m["name"] != found["name"]] + [found]
        save(args.out, results)

    for row in (r for r in MODELS if not args.models or r[0] in args.models.split(",")):
        known = next((m for m in results["models"] if m["name"] == row[0]), None)
        one, done = find(folders, row[2]), is_done(args, row, known)
        there += done or one is not None
        if done or not one:
            print(f"{row[0]}: {'already measured' if done else row[2] + ' is not there'}", flush=True)
            continue
        try:
            failed += go_on(args, row, known, one, folders, end, keep) is not None
        except Ended:
            missing.append(row[0])
    if missing:
        print(f"budget spent; the same command goes on with: {' '.join(missing)}")
    return 1 if failed else 75 if missing else 0 if there else 77


if __name__ == "__main__":
    sys.exit(main())
