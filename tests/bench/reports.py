#!/usr/bin/env python3
"""reports.py BRAID: bench/clones/run.py and bench/branches/run.py on small graphs: what they keep, go on with and print."""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


def run(script, folder, *options):
    done = subprocess.run([sys.executable, BENCH / script, sys.argv[1], folder / "r.json", "--seconds", "0.01",
                           "--report", folder / "r.md", "--plot", folder / "r.svg", *options], capture_output=True, text=True)
    assert done.returncode in (0, 1, 75) and not done.stderr, done.stderr
    file = folder / "r.json"
    return done, json.loads(file.read_text())["rows"] if file.exists() else {}, (folder / "r.md").read_text()


def lines_with(text, start):
    return [line for line in text.splitlines() if line.startswith(start)]


def check(script, options, least, titles):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        done, rows, text = run(script, folder, *options, "--budget", "0")
        assert done.returncode == 75 and not rows and "left out" in done.stdout, done.stdout
        done, rows, text = run(script, folder, *options)
        assert done.returncode == 0 and len(rows) >= least, (done.stdout, len(rows))
        assert not any("error" in row for row in rows.values()), rows
        for title in titles:
            assert len(lines_with(text, title)) > 0, (title, text)
        assert len(list(tree.parse(folder / "r.svg").getroot())) > 10
        again, same, _ = run(script, folder, *options)
        assert again.returncode == 0 and same == rows and "/" not in again.stdout, again.stdout
        some = dict(list(rows.items())[1:])
        (folder / "r.json").write_text(json.dumps({"device": "", "rows": some}))
        again, same, _ = run(script, folder, *options)
        assert set(same) == set(rows) and all(same[k] == some[k] for k in some), again.stdout
        (folder / "r.json").write_text(json.dumps({"device": "", "rows": {k: {"error": "x"} for k in some}}))
        again, same, _ = run(script, folder, *options, "--device", "no such device")
        assert again.returncode == 1 and all("no device matches" in row["error"] for row in same.values()), same
        print(script, len(rows), "rows")


check("clones/run.py", ("--models", "mlp", "--copies", "3", "--grow", "2"), 15, ("| mlp | ", "| 2 | ", "| mlp | plain"))
check("branches/run.py", ("--graphs", "chains16,dag100"), 2, ("| chains16 |", "| dag100 |"))
