"""What braid is to reach on an H200, against what lanes.json, clones.json and branches.json hold."""

WITH, WITHOUT = "device_p50_ms", "compute_p50_ms"  # the copies from and to host memory


class Measured:
    """Times by name; None where there is none."""

    def __init__(self, lanes, clones, branches):
        self.models = {m["name"]: m.get("rows", []) for m in lanes.get("models", [])}
        self.clones, self.branches = clones.get("rows", {}), branches.get("rows", {})

    def lanes(self, name, n, clock):
        return next((r.get(clock) for r in self.models.get(name, []) if r.get("lanes") == n), None)

    def batch(self, name, n, clock):
        row = next((r for r in self.models.get(name, []) if r.get("lanes") == n), {})
        return (row.get("against") or {}).get(clock)

    def clone(self, key, clock):
        row = self.clones.get(key)
        return row.get(clock) if isinstance(row, dict) else None

    def schedule(self, rows, key, name, clock):
        found = rows.get(key)
        return next((r.get(clock) for r in found if r["schedule"] == name), None) if isinstance(found, list) else None

    def cloned(self, key, name, clock):
        return self.schedule(self.clones, key, name, clock)


def over(a, b):
    return a / b if a and b else None


def times(a, n):
    return a * n if a else None


def of_lanes(m, c):
    for name in ("digits", "mnist"):
        one, many = m.lanes(name, 1, c), m.lanes(name, 64, c)
        yield f"{name}: 64 lanes / 1 lane", over(many, one), "<=", 1.3
        yield f"{name}: 64 runs / 64 lanes", over(times(one, 64), many), ">=", 20
    for name, ms in (("squeezenet", 4.1), ("cnn20", 1.0), ("mnist", 0.1)):
        yield f"{name}: 64 lanes, ms", m.lanes(name, 64, c), "<=", ms
    for name in m.models:
        yield f"{name}: true batch of 64 / 64 lanes", over(m.batch(name, 64, c), m.lanes(name, 64, c)), ">=", 0.95


def of_clones(m, c):
    for name in ("digits", "mnist", "mlp"):
        key = f"{name}/clones64"
        whole, serial = m.cloned(key, "re-rolled", c), m.cloned(key, "serial", c)
        yield f"{name}: 64 clones / 1 copy", over(whole, m.clone(f"{name}/one", c)), "<=", 1.3
        yield f"{name}: 64 clones, serial / re-rolled", over(serial, whole), ">=", 40
        yield f"{name}: 64 clones, serial / merged", over(serial, m.cloned(key, "merged", c)), ">=", 8
    for name in ("digits", "mnist", "mlp", "cnn20", "squeezenet", "mobilenet_v2"):
        lanes = m.clone(f"{name}/lanes64", c)
        yield f"{name}: 64 clones / 64 lanes", over(m.cloned(f"{name}/clones64", "re-rolled", c), lanes), "<=", 1.05
    for name, ms in (("squeezenet", 4.3), ("cnn20", 1.0), ("mnist", 0.12)):
        yield f"{name}_x64_f32.onnx, ms", m.cloned(f"file {name}/clones64", "re-rolled", c), "<=", ms


def of_branches(m, c):
    for name, least in (("chains", 14), ("inception_v3", 1.15)):
        best = [m.schedule(m.branches, name, way, c) for way in ("waves", "merged", "re-rolled")]
        serial = m.schedule(m.branches, name, "serial", c)
        yield f"{name}: serial / best", over(serial, min((b for b in best if b), default=None)), ">=", least


def verdict(value, relation, bound):
    if value is None:
        return "–"
    met = value <= bound if relation == "<=" else value >= bound
    return f"{value:.3g}{'' if met else ' **missed**'}"


def table(lanes, clones, branches):
    """A row for each target of which something is measured: with copies, and what the device computes alone."""
    m = Measured(lanes, clones, branches)
    lines = ["| measure | target | device time with copies | without |", "|---|--:|--:|--:|"]
    for group in (of_lanes, of_clones, of_branches):
        for (what, a, relation, bound), (_, b, _, _) in zip(group(m, WITH), group(m, WITHOUT)):
            if a is not None or b is not None:
                lines.append(f"| {what} | {relation} {bound} | {verdict(a, relation, bound)} | {verdict(b, relation, bound)} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""
