"""Measurements that are kept as they come: a run that is cut short goes on where it stopped.

RESULTS.json is {"device": ..., "rows": {key: row}}; a row is what `braid bench --json` says, or {"error": text}.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import time

import onnx


class Results:
    def __init__(self, o):
        self.o, self.path = o, pathlib.Path(o.results)
        self.end = time.monotonic() + o.budget
        self.rows = json.loads(self.path.read_text())["rows"] if self.path.exists() and not o.afresh else {}
        self.left_out, self.asked = [], []
        self.scratch = tempfile.TemporaryDirectory()

    def left(self):
        return self.end - time.monotonic()

    def device(self):
        rows = (r[0] if isinstance(r, list) else r for r in self.rows.values())
        return next((r["device"] for r in rows if "device" in r), "")

    def add(self, key, row):
        self.rows[key] = row
        text = json.dumps({"device": self.device(), "rows": self.rows}, indent=1)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text + "\n")
        os.replace(fresh, self.path)
        figures = row if isinstance(row, dict) else row[-1]
        print(f"{key}: {figures.get('error') or time_of(figures)}", flush=True)

    def file(self, name, make):
        """The path of a model that `make` gives, saved once."""
        path = pathlib.Path(self.scratch.name) / f"{name}.onnx"
        if not path.exists():
            onnx.save(make(), path)
        return path

    def bench(self, key, path, *options, seconds=None):
        """Unless it is there already: `braid bench path() options`. `path` is called only when it is needed."""
        self.asked.append(key)
        if key in self.rows and "error" not in self.rows[key]:
            return
        if self.left() < 2:
            self.left_out.append(key)
            return
        file = path()
        if not file.exists():
            self.left_out.append(key)
            return
        command = [self.o.braid, "bench", str(file), "--json", "-q", "--seconds", str(seconds or self.o.seconds),
                   "--warmup", "2", *(["--device", self.o.device] if self.o.device else []), *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(self.left() + 10, 1))
        except subprocess.TimeoutExpired:
            self.left_out.append(key)
            return
        self.add(key, json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip()})


def time_of(row):
    """ms by the device where it has a clock, else wall time; None for a row that is not there."""
    if not row or "error" in row:
        return None
    return row.get("device_p50_ms") or row["wall_p50_ms"]


def number(value, digits=3):
    return "–" if value is None else f"{value:.{digits}f}"


def over(a, b, digits=2):
    return "–" if a is None or not b else f"{a / b:.{digits}f}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"


def arguments(parser):
    parser.add_argument("braid")
    parser.add_argument("results", help="RESULTS.json; what it holds is not measured again")
    parser.add_argument("--report", help="write tables (Markdown) here")
    parser.add_argument("--plot", help="write a bar chart (SVG) here")
    parser.add_argument("--budget", type=float, default=180, help="seconds to spend in this call (default 180)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each figure (default 0.3)")
    parser.add_argument("--device", default="")
    parser.add_argument("--afresh", action="store_true", help="forget what RESULTS.json holds")
    return parser


def finish(results, report, chart):
    """Writes what was asked for; -> the exit code: 1 when something failed, 75 when something was left out."""
    o = results.o
    if o.report:
        pathlib.Path(o.report).write_text(report())
    if o.plot:
        pathlib.Path(o.plot).write_text(chart())
    failed = [k for k in results.asked if "error" in results.rows.get(k, ())]
    if results.left_out:
        print(f"left out for lack of time, or of the file: {len(results.left_out)}; the same command goes on with them")
    if failed:
        print("failed:", *failed)
    return 1 if failed else 75 if results.left_out else 0
