#!/usr/bin/env python3
"""bench/kit: a packed folder runs elsewhere, one job's end is not the others', what is done is not done again.

    kit.py BUILD
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

KIT = pathlib.Path(__file__).resolve().parents[2] / "bench/kit"
DIGITS = "lanes/digits"


def call(*command, code=0):
    environment = {k: v for k, v in os.environ.items() if k in ("PATH", "VK_DRIVER_FILES", "VK_ICD_FILENAMES")}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment | {"PYTHON": sys.executable})
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def states(folder):
    return {k: j["state"] for k, j in json.loads((folder / "jobs.json").read_text()).items()}


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for _ in range(2):  # also over an older one
            call(KIT / "pack.sh", sys.argv[1], folder / "here", "--programs", "unit_api_lanes_status")
        (folder / "here").rename(folder / "there")
        kit, back = folder / "there", folder / "back"
        rows = json.loads((kit / "tests.json").read_text())
        assert [r[0] for r in rows] == ["unit.api_lanes_status"], rows
        (kit / "tests.json").write_text(json.dumps(rows + [[n, n, {}] for n in ("bad", "slow", "none")]))
        script(kit / "bin/bad", "echo not this; exit 3")
        script(kit / "bin/slow", "echo so far; sleep 100")
        (kit / "bin/none").write_text("")
        said = call(kit / "go.sh", "units", "--seconds", 7, "--jobs", 4, "--out", back, code=1)
        assert "units: 2 FAILED, 1 cut, 1 ok" in said and "cut: units/slow: so far" in said, said
        assert states(back) == {"units/unit.api_lanes_status": "ok", "units/bad": "FAILED", "units/slow": "cut",
                                "units/none": "FAILED"}, states(back)
        script(kit / "bin/slow", "exit 0")
        said = call(kit / "go.sh", "units", "lanes", "--small", "--point", 0.01, "--only", "s")
        assert [line.split()[1] for line in said.splitlines() if line.startswith("ok ")] == ["units/slow", DIGITS], said
        assert "| digits |" in said, said
        (kit / "results").rename(folder / "first")
        said = call(kit / "go.sh", "units", "lanes", "--small", "--only", "digits", "--from", back, "--from", folder / "first")
        assert DIGITS not in said, said
        (kit / "revision").write_text("another\n")
        said = call(kit / "go.sh", "units", "--only", "slow", "--from", back)
        assert "not of another: left out" in said and "ok      units/slow" in said, said
        said = call(sys.executable, KIT / "merge.py", back, folder / "first", "--out", folder / "all")
        assert "units: 2 FAILED, 2 ok" in said and "| digits |" in said, said
        assert (folder / "all/lanes.svg").exists()


main()
