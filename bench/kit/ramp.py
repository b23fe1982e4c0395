#!/usr/bin/env python3
"""How the time of a run changes from the creation of its session on.

    ramp.py BRAID MODEL LANES [OPTION ...]

`braid bench` in ten windows of 0.25 s, one after the other, without warming up: clocks that rise, work that is left from
creation, and what is slow once only, stand apart.
"""
import json
import subprocess
import sys

WINDOWS, SECONDS = 10, 0.25


def main():
    braid, model, lanes, *more = sys.argv[1:]
    command = [braid, "bench", model, "-n", ",".join([lanes] * WINDOWS), "--warmup", "0", "--seconds", str(SECONDS), "--json",
               "-q", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    rows = json.loads(done.stdout)
    made = rows[0].get("pipelines", {})
    print(f"planned in {rows[0]['plan_ms']:.1f} ms, {made.get('made', '?')} pipelines in {made.get('ms', 0):.1f} ms, slowest "
          f"{made.get('slowest_ms', 0):.1f} ms: {made.get('slowest', '')}")
    for what in ("wall_p90_ms", "wall_p50_ms", "device_p50_ms", "compute_p50_ms"):
        print(f"{what:<15}", *(f"{r[what]:8.3f}" if r.get(what) is not None else "–" for r in rows))
    print(f"first run {rows[0].get('first_run_ms', 0):.1f} ms, then device p50 ms:",
          *(f"{r['device_p50_ms']:.3f}" if r.get("device_p50_ms") is not None else "–" for r in rows))


if __name__ == "__main__":
    main()
