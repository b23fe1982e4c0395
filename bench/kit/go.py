#!/usr/bin/env python3
"""Runs a packed kit's steps on the machine it lies on; what is done is not done again.

    go.sh [STEP ...] [--seconds S] [--jobs N] [--device D] [--out DIR] [--from DIR] [--only TEXT] [--again] [--list]

Tests, side by side: files (writes the benchmarks' models), models, units, clones-check, plans, random, conformance.
Measures, one at a time: machine, lanes, free-order, clones, branches, ort, pipelines, mm.
Without a STEP: all of them, in this order; tests go first. Each job has its own limit, the call as a whole has --seconds
(540); what it cuts is done by the next call. --from: results of earlier calls of the same build, of other machines too.
--out: results are copied there as they come. --only: jobs whose name contains TEXT. --again: also what failed. Exit code
0 when all is well.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
from clocks import Clocks  # noqa: E402
from steps import STEPS  # noqa: E402
import merge  # noqa: E402

OPENING = 5  # seconds below which no job is started
KEPT = 60  # lines of a job's output in the log


class Call:
    """One call of go.sh: its options, its end, and what is known."""

    def __init__(self, o):
        self.o, self.end = o, time.monotonic() + o.seconds
        self.root, self.results = ROOT, ROOT / "results"
        self.revision = (ROOT / "revision").read_text().strip()
        (ROOT / "cache").mkdir(exist_ok=True)
        self.open_results()
        for folder in o.earlier:
            if merge.revision(folder) == self.revision:
                merge.take(folder, self.results)
            else:
                print(f"{folder}: results of {merge.revision(folder)}, not of {self.revision}: left out")
        self.known = merge.load(self.results / "jobs.json", {})
        self.ran = []

    def open_results(self):
        """Those of another build are put aside."""
        if self.results.exists() and merge.revision(self.results) != self.revision:
            self.results.rename(f"{self.results}.{merge.revision(self.results)}.{int(time.time())}")
        self.results.mkdir(exist_ok=True)
        (self.results / "revision.txt").write_text(self.revision + "\n")

    def left(self):
        return self.end - time.monotonic()

    def environment(self, job):
        """braid's pipeline cache is that of the job's kind, the driver's own (NVIDIA's) is there for all."""
        name = job.cache if STEPS[job.key.split("/")[0]].side_by_side else "measures"
        fresh = {"XDG_CACHE_HOME": str(ROOT / "cache" / name), "__GL_SHADER_DISK_CACHE_PATH": str(ROOT / "cache"),
                 "__GL_SHADER_DISK_CACHE_SKIP_CLEANUP": "1", "PYTHONUNBUFFERED": "1"}
        if self.o.device:
            fresh["BRAID_TEST_DEVICE"] = self.o.device
        if job.program:
            fresh["LD_LIBRARY_PATH"] = str(ROOT / "lib")
        return os.environ | fresh | job.environment

    def wanted(self, job):
        if job.mark:
            return not job.mark.exists()
        if self.o.only and self.o.only not in job.key:
            return False
        state = self.known.get(job.key, {}).get("state")
        return state != "ok" and (state != "FAILED" or self.o.again)

    def record(self, job, state, seconds, text, clocks=""):
        if state == "ok" and job.partly and job.partly in text:
            state = "part"
        lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
        said = merge.clean(([line for line in lines if job.tell in line] or lines or [""])[-1])[:300]
        self.known[job.key] = {"state": state, "seconds": round(seconds, 1), "said": said, "clocks": clocks}
        self.ran.append(job.key)
        (self.results / "jobs.json").write_text(json.dumps(self.known, indent=1) + "\n")
        with open(self.results / "log.txt", "a") as log:
            shown = lines if job.keep else lines[-KEPT:]
            log.write(f"== {job.key}: {state}, {seconds:.1f} s {clocks}\n" + "\n".join(shown) + "\n")
        print(f"{state:<8}{job.key:<44}{seconds:6.1f} s  {said[:110]} {clocks}", flush=True)
        self.copy()

    def copy(self):
        if self.o.out:
            self.o.out.mkdir(parents=True, exist_ok=True)
            for file in (*self.results.glob("*.json"), *self.results.glob("*.txt")):
                shutil.copy(file, self.o.out / file.name)


class Running:
    """A job's process and its output, with the second at which it is stopped."""

    def __init__(self, call, job):
        self.job, self.start = job, time.monotonic()
        self.limit = min(job.limit, call.left())
        self.log = call.root / "cache" / f"{job.key.replace('/', '.')}.log"
        command = [str(c).replace("{seconds}", str(max(int(self.limit - job.margin), 1))) for c in job.command]
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            env=call.environment(job), cwd=call.root, start_new_session=True)

    def state(self):
        """None while it runs."""
        code = self.process.poll()
        if code is None and time.monotonic() - self.start < self.limit:
            return None
        if code is None:
            self.stop()
            return "cut"
        return self.job.verdict(code)

    def stop(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def output(self):
        text = self.log.read_text(errors="replace")
        self.log.unlink()
        return text


def run(call, jobs, side_by_side, clocks=None):
    """A job that cannot start or fails is a line of the results; the others go on."""
    waiting, running = list(jobs), []
    try:
        return go_through(call, waiting, running, side_by_side, clocks)
    finally:
        for r in running:
            r.stop()


def go_through(call, waiting, running, side_by_side, clocks):
    """-> how many jobs there was no time for."""
    while waiting or running:
        while waiting and len(running) < side_by_side and call.left() > OPENING:
            job = waiting.pop(0)
            if clocks:
                clocks.mark()
            try:
                running.append(Running(call, job))
            except OSError as e:
                call.record(job, "FAILED", 0, str(e))
        if not running:
            return len(waiting)
        time.sleep(0.05)
        for r in list(running):
            state = r.state()
            if state:
                running.remove(r)
                call.record(r.job, state, time.monotonic() - r.start, r.output(), clocks.since() if clocks else "")
    return 0


def measured(call, jobs):
    """One after the other, with the clocks that the GPU had."""
    clocks = Clocks(call.root / "cache/clocks.csv")
    try:
        return run(call, jobs, 1, clocks)
    finally:
        clocks.end()


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("steps", nargs="*", metavar="STEP")
    p.add_argument("--seconds", type=float, default=540)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--device", default="")
    p.add_argument("--out", type=pathlib.Path)
    p.add_argument("--from", dest="earlier", action="append", default=[], type=pathlib.Path)
    p.add_argument("--point", type=float, default=0.6, help="seconds of each measured figure, warm-up aside (0.6)")
    p.add_argument("--random", type=int, default=120, help="seconds of each random run (120)")
    p.add_argument("--small", action="store_true", help="few models and figures, to try the kit itself")
    p.add_argument("--only", default="")
    p.add_argument("--again", action="store_true")
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    unknown = [s for s in o.steps if s not in STEPS]
    if unknown:
        p.error(f"no such step: {' '.join(unknown)}")
    return o


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    o = arguments()
    call = Call(o)
    left = 0
    names = o.steps or list(STEPS)
    tests = [s for s in names if STEPS[s].side_by_side]
    for group, width in [(tests, o.jobs)] + [([s], 1) for s in names if s not in tests]:
        jobs = [j for name in group for j in STEPS[name].jobs(call)]
        jobs = [j for j in jobs if call.wanted(j)]
        if o.list:
            print("\n".join(f"{j.key}: {j.limit:g} s: {' '.join(map(str, j.command))}" for j in jobs))
        elif jobs:
            left += measured(call, jobs) if width == 1 else run(call, jobs, width)
    if o.list:
        return 0
    print(merge.summary(call.known))
    if any(not STEPS[key.split("/")[0]].side_by_side for key in call.ran):
        print(merge.tables(call.results))
    call.copy()
    bad = [k for k in call.ran if call.known[k]["state"] in ("FAILED", "cut", "part")]
    if left:
        print(f"{left} jobs wait for the next call")
    return 1 if bad or left else 0


if __name__ == "__main__":
    sys.exit(main())
