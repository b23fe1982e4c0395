#!/usr/bin/env python3
"""What waves, merging and re-rolling save on graphs with branches: `braid bench --ablate` on those of make.py.

    run.py BRAID RESULTS.json [--report branches.md] [--plot branches.svg] [--budget SECONDS] [--device D]
           [--graphs inception_v3,chains,...]

Needs onnx and numpy. Measures until the budget is spent; called again it goes on.
"""
import argparse
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]
from graphs.bars import bars  # noqa: E402
from graphs.results import Results, arguments, finish, number, over, table, time_of  # noqa: E402
from make import make  # noqa: E402

GRAPHS = {"chains": ("chains",), "inception_v3": ("inception_v3",), "nasnet": ("nasnet",), "heads": ("heads",),
          "dag300": ("dag", 300), "dag3000": ("dag", 3000), "chains16": ("chains", 0, 16), "dag100": ("dag", 100)}
DEFAULT = "chains,inception_v3,nasnet,heads,dag300,dag3000"
SCHEDULES = ("serial", "waves", "merged", "re-rolled")


def ways(r, name):
    got = r.rows.get(name)
    return {row["schedule"]: row for row in got} if isinstance(got, list) else {}


def report(r, o):
    rows = []
    for name in o.graphs:
        w = ways(r, name)
        t = {k: time_of(row) for k, row in w.items()}
        rows.append([name, *(w.get(k, {}).get(key, "–") for k, key in (("serial", "steps"), ("merged", "dispatches"),
                                                                       ("merged", "waves"))),
                     *(number(t.get(k)) for k in SCHEDULES), *(over(t.get("serial"), t.get(k)) for k in SCHEDULES[1:]),
                     number(w["re-rolled"]["plan_ms"], 0) if w else "–"])
    return (f"# Graphs with branches\n\n{r.device()}. Medians in ms, by the device's clock where it has one.\n\n" +
            table(["graph", "steps", "dispatches", "waves", *(f"{s}, ms" for s in SCHEDULES), "serial / waves", "serial / merged",
                   "serial / re-rolled", "planning"], rows))


def chart(r, o):
    values = {g: {k: time_of(row) for k, row in ways(r, g).items()} for g in o.graphs}
    return bars("One graph, four schedules, ms", list(o.graphs), list(SCHEDULES), values)


def main():
    parser = arguments(argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter))
    parser.add_argument("--graphs", default=DEFAULT, type=lambda s: s.split(","))
    o = parser.parse_args()
    r = Results(o)
    for name in o.graphs:
        r.bench(name, lambda: r.file(name, lambda: make(*GRAPHS[name])), "--ablate")
    sys.exit(finish(r, lambda: report(r, o), lambda: chart(r, o)))


if __name__ == "__main__":
    main()
