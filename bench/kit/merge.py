#!/usr/bin/env python3
"""The results of several calls of a kit as the tables and plots of bench/RESULTS.md.

    merge.py RESULTS... --out FOLDER

RESULTS are folders that go.sh filled. FOLDER gets their union (to go on with: go.sh --from FOLDER), lanes.svg, gain.svg,
clones.svg and branches.svg; the tables are printed as Markdown.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import targets  # noqa: E402

BENCH = pathlib.Path(__file__).resolve().parents[1]


def load(path, otherwise):
    return json.loads(path.read_text()) if path.is_file() else otherwise


def clean(text):
    """Without a terminal's colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def revision(folder):
    file = folder / "revision.txt"
    return file.read_text().strip() if file.is_file() else "unknown"


# ---- one folder into another


def better(new, old):
    """A measured row goes before an error, a passed job before another."""
    if old is None or "error" in old:
        return True
    return new.get("state") == "ok" and old.get("state") != "ok" if "state" in new and "state" in old else False


def join_named(new, old, key):
    """A file whose `key` holds rows by name."""
    rows = dict(old.get(key, {}))
    rows |= {k: r for k, r in new.get(key, {}).items() if better(r, rows.get(k))}
    return old | {k: v for k, v in new.items() if k != key and (v or k not in old)} | {key: rows}


def join_model(new, old):
    """The points of both; where both have one, the old."""
    points = {r["lanes"]: r for m in (new, old) for r in m.get("rows", [])}
    joined = {k: v for k, v in (new | old).items() if k != "error" or ("error" in new and "error" in (old or new))}
    return joined | ({"rows": [points[n] for n in sorted(points)]} if points else {})


def join_lanes(new, old):
    rows = {m["name"]: m for m in old.get("models", [])}
    for m in new.get("models", []):
        rows[m["name"]] = join_model(m, rows.get(m["name"], {}))
    return old | new | {"models": list(rows.values())}


def join_json(name, new, old):
    if name == "jobs.json":
        return join_named({"jobs": new}, {"jobs": old}, "jobs")["jobs"]
    return join_lanes(new, old) if name == "lanes.json" else join_named(new, old, "rows")


def take(folder, results):
    """Adds what an earlier call left; what is there already stays."""
    for file in sorted(folder.glob("*.json")):
        to = results / file.name
        to.write_text(json.dumps(join_json(file.name, load(file, {}), load(to, {})), indent=1) + "\n")
    log, to = folder / "log.txt", results / "log.txt"
    if log.is_file():
        text, before = log.read_text(), to.read_text() if to.is_file() else ""
        if text not in before:
            to.write_text(before + text)


# ---- tables


def summary(jobs):
    """A line for each step: how many of its jobs ended how; the names of those that are not well."""
    steps = collections.defaultdict(collections.Counter)
    for key, job in jobs.items():
        steps[key.split("/")[0]][job["state"]] += 1
    lines = [f"{step}: " + ", ".join(f"{n} {state}" for state, n in sorted(c.items())) for step, c in steps.items()]
    totals = {"runs with lanes": r"(\d+) runs with lanes", "graphs under random plans": r"(\d+) graphs, \d+ nodes"}
    found = {what: [int(n) for j in jobs.values() for n in re.findall(form, j["said"])] for what, form in totals.items()}
    lines += [f"random: {sum(numbers)} {what}" for what, numbers in found.items() if numbers]
    unwell = [(k, j) for k, j in jobs.items() if j["state"] in ("FAILED", "cut", "part")]
    return "\n".join(lines + [f"{j['state']}: {k}: {j['said']}" for k, j in unwell])


def script(*command):
    done = subprocess.run([sys.executable, "-B", *map(str, command)], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else done.stdout + done.stderr


def report(which, results, folder, *more):
    """The page that clones/run.py or branches/run.py writes of what it has, without measuring."""
    page = folder / f"{which}.md"
    script(BENCH / which / "run.py", "none", results / f"{which}.json", "--budget", 0, "--report", page, "--plot",
           folder / f"{which}.svg", *more)
    return page.read_text() if page.is_file() else ""


def clone_options(results):
    """What of clones.json there is to report."""
    keys = load(results / "clones.json", {}).get("rows", {})
    models = [k.split("/")[0] for k in keys]
    plain = [m for m in dict.fromkeys(models) if not m.startswith("file ")]
    files = [m[5:] for m in dict.fromkeys(models) if m.startswith("file ")]
    grown = sorted({int(k.split("/grow")[1]) for k in keys if "/grow" in k})
    return ["--models", ",".join(plain), "--grow", ",".join(map(str, grown))] + (
        ["--files", ".", "--shared", ",".join(files)] if files else [])


def wall_of(row):
    return row.get("wall_p50_ms") if isinstance(row, dict) else None


def ort_table(results):
    rows = load(results / "ort.json", {}).get("rows", {})
    clones = load(results / "clones.json", {}).get("rows", {})
    lanes = {m["name"]: m for m in load(results / "lanes.json", {}).get("models", [])}
    lines = ["| file | items | ONNX Runtime, WebGPU, ms | braid, ms | |", "|---|--:|--:|--:|---|"]
    for key, row in rows.items():
        name, kind = key.split("/")
        if kind == "x64":
            found = clones.get(f"file {name}/clones64")
            ways = found if isinstance(found, list) else []
            own = next((wall_of(r) for r in ways if r["schedule"] == "re-rolled"), None)
        else:
            points = [r for r in lanes.get(name, {}).get("rows", []) if r["lanes"] == row.get("items")]
            own = next((wall_of(r if row["items"] == 1 else r.get("against") or {}) for r in points), None)
        cells = [f"{c:.3f}" if isinstance(c, float) else "–" for c in (row.get("wall_p50_ms"), own)]
        lines.append(f"| {name}, {kind} | {row.get('items', '')} | {' | '.join(cells)} | {row.get('error', '')} |")
    return "\n".join(lines) + "\n" if rows else ""


def sections(results, folder):
    aims = targets.table(*(load(results / f"{name}.json", {}) for name in ("lanes", "clones", "branches")))
    if aims:
        yield "### Targets, of an H200\n\n" + aims
    if (results / "lanes.json").is_file():
        yield "### Lanes\n\n" + script(BENCH / "lanes/plot.py", results / "lanes.json", folder)
    if (results / "clones.json").is_file():
        yield report("clones", results, folder, *clone_options(results))
    if (results / "branches.json").is_file():
        yield report("branches", results, folder, "--graphs", ",".join(load(results / "branches.json", {})["rows"]))
    table = ort_table(results)
    if table:
        yield "### ONNX Runtime on the same card, from and to host memory\n\n" + table


def tables(results):
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join(sections(results, pathlib.Path(folder)))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results", nargs="+", type=pathlib.Path)
    p.add_argument("--out", type=pathlib.Path, required=True)
    o = p.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    for folder in o.results:
        take(folder, o.out)
    known = sorted({revision(folder) for folder in o.results})
    (o.out / "revision.txt").write_text(known[0] + "\n")
    print("builds:", *known)
    print(summary(load(o.out / "jobs.json", {})) + "\n")
    print("\n".join(sections(o.out, o.out)))


if __name__ == "__main__":
    main()
