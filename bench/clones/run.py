#!/usr/bin/env python3
"""What a graph of clones costs: against one copy, as many runs, lanes, and a true batch.

    run.py BRAID RESULTS.json [--report clones.md] [--plot clones.svg] [--budget SECONDS] [--device D]
           [--models digits,mlp,...] [--copies 64] [--grow 2,4,...,256] [--files DIR [--shared NAME,...]]
           [--ort PROVIDER]

Needs onnx and numpy. Measures until the budget is spent; called again it goes on. --files: a folder with NAME_b1_f32.onnx
and NAME_x64_f32.onnx, measured as they are; --shared says which (squeezenet,cnn20,mnist). --ort: ONNX Runtime beside it, e.g.
WebGpuExecutionProvider, where it starts.
"""
import argparse
import pathlib
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]
from check import DISGUISES  # noqa: E402
from graphs.bars import bars  # noqa: E402
from graphs.models import MODELS  # noqa: E402
from graphs.results import Results, arguments, finish, number, over, table, time_of  # noqa: E402
from make import base_model, clone, dims_of  # noqa: E402

SMALL = ("digits", "mnist", "mlp")
SHARED_FILES = "squeezenet,cnn20,mnist"


def label(disguise):
    return " ".join(f"{k}={v}" if isinstance(v, str) else k for k, v in disguise.items()) or "plain"


# ---- measuring


def one_file(r, name):
    return r.file(name, lambda: base_model(name))


def clone_file(r, name, copies, disguise):
    return r.file(f"{name}_x{copies}_{label(disguise).replace(' ', '_')}",
                  lambda: clone(base_model(name), copies, **disguise)[0])


def measure_models(r, o):
    n = o.copies
    for name in o.models:
        r.bench(f"{name}/one", lambda: one_file(r, name))
        r.bench(f"{name}/lanes{n}", lambda: one_file(r, name), "-n", str(n))
        r.bench(f"{name}/batch{n}", lambda: r.file(f"{name}_b{n}", lambda: MODELS[name](n)))
        r.bench(f"{name}/clones{n}", lambda: clone_file(r, name, n, {}), "--ablate")


def measure_growth(r, o):
    for name in (m for m in o.models if m in SMALL):
        for n in o.grow:
            r.bench(f"{name}/grow{n}", lambda: clone_file(r, name, n, {}))
            r.bench(f"{name}/lanes{n}", lambda: one_file(r, name), "-n", str(n))


def measure_disguises(r, o):
    for name in (m for m in o.models if m in ("digits", "mlp")):
        for disguise in DISGUISES:
            r.bench(f"{name}/as{o.copies} {label(disguise)}", lambda: clone_file(r, name, o.copies, disguise))


def measure_files(r, o):
    for name in o.shared if o.files else ():
        folder = pathlib.Path(o.files)
        r.bench(f"file {name}/one", lambda: folder / f"{name}_b1_f32.onnx")
        r.bench(f"file {name}/lanes64", lambda: folder / f"{name}_b1_f32.onnx", "-n", "64")
        r.bench(f"file {name}/clones64", lambda: folder / f"{name}_x64_f32.onnx", "--ablate")


def ort_time(path, provider, seconds):
    """Median ms of a run from and to host memory."""
    import numpy as np
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=[provider])
    if session.get_providers()[0] != provider:
        raise RuntimeError(f"{provider} does not start")
    feeds = {i.name: np.random.default_rng(0).random(i.shape, np.float32) for i in session.get_inputs()}
    times, end = [], time.monotonic() + seconds
    session.run(None, feeds)
    while not times or time.monotonic() < end:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[len(times) // 2]


def measure_ort(r, o):
    for name in o.models if o.ort else ():
        key = f"{name}/ort"
        if key in r.rows and "error" not in r.rows[key]:
            continue
        if r.left() < 5:
            r.left_out.append(key)
            continue
        try:
            one = ort_time(one_file(r, name), o.ort, o.seconds)
            whole = ort_time(clone_file(r, name, o.copies, {}), o.ort, o.seconds)
            r.add(key, {"provider": o.ort, "one_ms": one, "wall_p50_ms": whole})
        except Exception as e:  # whatever keeps it from starting is a line of the report
            r.rows[key] = {"provider": o.ort, "skipped": str(e).splitlines()[0][:200]}
            print(f"{key}: {r.rows[key]['skipped']}")


# ---- the report


def ways(rows, key):
    got = rows.get(key)
    return {row["schedule"]: row for row in got} if isinstance(got, list) else {}


def clone_row(r, name, n, lanes=None):
    one, lane = time_of(r.rows.get(f"{name}/one")), time_of(r.rows.get(f"{name}/lanes{n}"))
    w = ways(r.rows, f"{name}/clones{n}")
    t = {k: time_of(row) for k, row in w.items()}
    last = t.get("re-rolled")
    return [name, number(one), number(one and n * one), number(lane), number(time_of(r.rows.get(f"{name}/batch{n}"))),
            *(number(t.get(k)) for k in ("serial", "waves", "merged", "re-rolled")), over(last, one), over(last, lane),
            over(t.get("serial"), t.get("merged")), over(t.get("serial"), last),
            number(w["re-rolled"]["plan_ms"], 0) if w else "–"]


def report(r, o):
    n = o.copies
    names = list(o.models) + ([f"file {name}" for name in o.shared] if o.files else [])
    text = [f"# {n} clones\n\n{r.device()}. Medians in ms, by the device's clock where it has one.\n",
            table(["model", "one copy", f"{n} runs (computed)", f"{n} lanes", f"batch of {n}", "clones, serial", "waves",
                   "merged", "re-rolled", "clones / one", "clones / lanes", "serial / merged", "serial / re-rolled",
                   "planning"], [clone_row(r, name, n) for name in names])]
    small = [m for m in o.models if m in SMALL]
    if small:
        rows = [[k, *(c for m in small for c in (number(time_of(r.rows.get(f"{m}/grow{k}"))), over(
            time_of(r.rows.get(f"{m}/grow{k}")), time_of(r.rows.get(f"{m}/lanes{k}")))))] for k in o.grow]
        text += ["\n## More and more copies\n",
                 table(["copies", *(h for m in small for h in (m, f"{m} / lanes"))], rows), "\n## Disguises\n"]
        rows = []
        for name in (m for m in small if m in ("digits", "mlp")):
            plain = time_of(r.rows.get(f"{name}/as{n} plain"))
            for d in DISGUISES:
                row = r.rows.get(f"{name}/as{o.copies} {label(d)}") or {}
                rows.append([name, label(d), number(time_of(row)), over(time_of(row), plain), row.get("dispatches", "–"),
                             row.get("waves", "–")])
        text.append(table(["model", "disguise", "time", "/ plain", "dispatches", "waves"], rows))
    if o.ort:
        rows = [[name, number(row.get("one_ms")), number(row.get("wall_p50_ms")), row.get("skipped", "")] for name in
                o.models for row in [r.rows.get(f"{name}/ort") or {}]]
        text += [f"\n## ONNX Runtime, {o.ort}, from and to host memory\n",
                 table(["model", "one copy", f"{n} clones", ""], rows)]
    return "\n".join(text)


def chart(r, o):
    n = o.copies
    values = {}
    for name in o.models:
        one, w = time_of(r.rows.get(f"{name}/one")), ways(r.rows, f"{name}/clones{n}")
        values[name] = {"one copy": one, f"{n} runs": one and n * one,
                        **{f"clones, {k}": time_of(row) for k, row in w.items()},
                        f"{n} lanes": time_of(r.rows.get(f"{name}/lanes{n}")),
                        f"batch of {n}": time_of(r.rows.get(f"{name}/batch{n}"))}
    series = ["one copy", f"{n} runs", "clones, serial", "clones, waves", "clones, merged", "clones, re-rolled",
              f"{n} lanes", f"batch of {n}"]
    return bars(f"{n} copies of a model in one graph, ms", list(o.models), series, values)


def names(text):
    return [name for name in text.split(",") if name]


def numbers(text):
    return [int(n) for n in text.split(",") if n]


def main():
    parser = arguments(argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter))
    parser.add_argument("--models", default=",".join(MODELS), type=names)
    parser.add_argument("--copies", type=int, default=64)
    parser.add_argument("--grow", type=numbers, default=[2, 4, 8, 16, 32, 64, 128, 256])
    parser.add_argument("--files")
    parser.add_argument("--shared", default=SHARED_FILES, type=names)
    parser.add_argument("--ort")
    o = parser.parse_args()
    r = Results(o)
    for measure in (measure_models, measure_files, measure_growth, measure_disguises, measure_ort):
        measure(r, o)
    sys.exit(finish(r, lambda: report(r, o), lambda: chart(r, o)))


if __name__ == "__main__":
    main()
