"""tests.py BIN < ctest's JSON: the tests that want a device and whose program is in BIN, as a list of [name, program,
environment]."""
import json
import pathlib
import sys

LABELS = {"gpu", "device", "lanes", "copies"}


def properties(test):
    return {p["name"]: p["value"] for p in test.get("properties", [])}


def wanted(test, folder):
    program = pathlib.Path(test.get("command", ["?"])[0]).name
    labels = set(properties(test).get("LABELS", []))
    return program.startswith("unit_") and (folder / program).exists() and (
        labels & LABELS or test["name"].startswith("unit.gpu_"))


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = [[t["name"], pathlib.Path(t["command"][0]).name, dict(e.split("=", 1) for e in properties(t).get("ENVIRONMENT", []))]
            for t in json.load(sys.stdin)["tests"] if wanted(t, folder)]
    json.dump(rows, sys.stdout, indent=1)


main()
