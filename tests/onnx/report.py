#!/usr/bin/env python3
"""Merges the results of the conformance tests into one page.

    report.py TESTS_DIR RESULTS_DIR PAGE [--bless]

With --bless the results also become the expectations (TESTS_DIR/expected.tsv); tests that failed are left out.
"""
import collections
import pathlib
import sys

GOOD = ("pass", "host", "unsupported")
BAD = ("mismatch", "error", "crash", "hang", "not-run")


def read_index(path):
    lines = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    names = lines[0]
    return {row[0]: dict(zip(names, row)) for row in lines[1:]}


def read_results(folder):
    results = {}
    for path in sorted(folder.glob("*.tsv")):
        for line in path.read_text(errors="replace").splitlines():
            name, outcome, text = line.split("\t")[:3]
            results[name] = (outcome, text)
    return results


def table(title, groups):
    lines = [f"| {title} | tests | pass | of them with a CPU step | unsupported | failed |", "|---|--:|--:|--:|--:|--:|"]
    for name, counts in groups:
        total = sum(counts.values())
        failed = sum(counts[b] for b in BAD)
        lines.append(f"| {name} | {total} | {counts['pass'] + counts['host']} | {counts['host']} | "
                     f"{counts['unsupported']} | {failed} |")
    return lines


def group(index, results, key):
    groups = collections.defaultdict(collections.Counter)
    for name, row in index.items():
        groups[row[key]][results.get(name, ("not-run", ""))[0]] += 1
    return groups


def page(index, results):
    by_verdict, by_op = group(index, results, "verdict"), group(index, results, "op")
    every = collections.Counter()
    for counts in by_op.values():
        every += counts
    ok = by_verdict["ok"]
    lines = ["# Conformance",
             "",
             "The backend tests of the onnx package 1.23.2, run by `ctest -L onnx`; this page is written by that run "
             "(`cmake --build build --target bless-onnx`). `pass` means the expected values within the tolerance of "
             "tests/onnx/index.tsv; a test with a CPU step passes, but not with `--no-host`.",
             "",
             f"Of the {sum(ok.values())} tests that need nothing beyond plain tensors (`ok`), "
             f"**{ok['pass'] + ok['host']} pass, {ok['pass']} of them without a step on the CPU**.",
             ""]
    order = sorted(by_verdict.items(), key=lambda item: -sum(item[1].values()))
    lines += table("verdict", order + [("**all**", every)]) + [""]
    lines += table("operator", sorted(by_op.items()))
    lines += ["", (pathlib.Path(__file__).parent / "devices.md").read_text().strip()]
    failed = sorted((n, r) for n, r in results.items() if r[0] in BAD)
    if failed:
        lines += ["", "## Failures", ""] + [f"- {n}: {outcome}: {text}" for n, (outcome, text) in failed]
    return "\n".join(lines) + "\n"


def bless(path, results):
    rows = [f"{name}\t{outcome}" for name, (outcome, _) in sorted(results.items()) if outcome in GOOD]
    path.write_text("\n".join(rows) + "\n")


def main():
    tests, folder, target = (pathlib.Path(p) for p in sys.argv[1:4])
    index, results = read_index(tests / "index.tsv"), read_results(folder)
    missing = [name for name in index if name not in results]
    if missing:
        print(f"{len(missing)} tests have no result, {missing[0]} for one")
    if "--bless" in sys.argv[4:]:
        if missing:
            sys.exit("report.py: run all of `ctest -L onnx` before blessing")
        bless(tests / "expected.tsv", results)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(index, results))
    counts = collections.Counter(outcome for outcome, _ in results.values())
    print(", ".join(f"{n} {outcome}" for outcome, n in counts.most_common()))


main()
