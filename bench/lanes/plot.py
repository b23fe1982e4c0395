#!/usr/bin/env python3
"""Draws what run.py measured.

    plot.py lanes.json FOLDER

writes FOLDER/lanes.svg (time against lanes, a panel for each model), FOLDER/gain.svg (items per second, one by one = 1)
and prints the table for RESULTS.md. On an H200 the figures of other runtimes (others.json) stand beside braid's.
"""
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
BLUE, GREEN, GREY, ORANGE, PURPLE, RED = "#1f5fbf", "#2a9d64", "#777777", "#e08214", "#8e44ad", "#c0392b"
PALETTE = [BLUE, ORANGE, GREEN, PURPLE, RED, "#138d9c", "#8c564b", "#d35fa0", "#6b7a1e", "#333333"]


def clock(row):
    """Device time with its copies; wall time where the device has no clock."""
    return row["device_p50_ms"] or row["wall_p50_ms"]


def points(model, batch=False):
    rows = [r for r in model.get("rows", []) if "error" not in r]
    if batch:
        return [(r["lanes"], clock(r["against"])) for r in rows if r.get("against")]
    return [(r["lanes"], clock(r)) for r in rows]


def at(series, lanes):
    return dict(series).get(lanes)


# ---- SVG

class Svg:
    def __init__(self, width, height):
        self.size, self.parts = (width, height), []

    def add(self, name, text=None, **attributes):
        inside = " ".join(f'{k.replace("_", "-")}="{v:.1f}"' if isinstance(v, float) else f'{k.replace("_", "-")}="{v}"'
                          for k, v in attributes.items())
        self.parts.append(f"<{name} {inside}/>" if text is None else f"<{name} {inside}>{escape(text)}</{name}>")

    def line(self, x1, y1, x2, y2, color, width=1.0):
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=color, stroke_width=width)

    def text(self, x, y, text, size=11, anchor="start", color="#222", weight="normal"):
        self.add("text", text, x=float(x), y=float(y), font_size=size, text_anchor=anchor, fill=color, font_weight=weight)

    def path(self, xys, color, width=2.0, dash=""):
        where = " ".join(f"{x:.1f},{y:.1f}" for x, y in xys)
        self.add("polyline", points=where, fill="none", stroke=color, stroke_width=width, stroke_linejoin="round",
                 **({"stroke_dasharray": dash} if dash else {}))

    def mark(self, x, y, color, shape="dot"):
        if shape == "dot":
            self.add("circle", cx=float(x), cy=float(y), r=2.6, fill=color)
        else:
            where = {"diamond": [(0, -5), (5, 0), (0, 5), (-5, 0)], "triangle": [(0, -5), (4.6, 4), (-4.6, 4)],
                     "square": [(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]}[shape]
            self.add("polygon", points=" ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in where), fill=color)

    def save(self, path):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.size[0]}" height="{self.size[1]}" '
                f'viewBox="0 0 {self.size[0]} {self.size[1]}" font-family="sans-serif">\n'
                f'<rect width="100%" height="100%" fill="white"/>\n')
        path.write_text(head + "\n".join(self.parts) + "\n</svg>\n")


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short(value):
    return f"{value:g}" if value < 1000 else f"{value:,.0f}"


class Panel:
    """A log-log plot in a rectangle; x is the number of lanes."""

    def __init__(self, svg, left, top, width, height, lanes, values):
        self.svg, self.left, self.top, self.width, self.height = svg, left, top, width, height
        self.x_top = math.log2(max(lanes)) or 1
        low, high = math.log10(min(values)), math.log10(max(values))
        pad = 0.06 * max(high - low, 0.5)
        self.low, self.high = low - pad, high + pad
        self.lanes = lanes

    def xy(self, lanes, value):
        return (self.left + self.width * math.log2(lanes) / self.x_top,
                self.top + self.height * (self.high - math.log10(value)) / (self.high - self.low))

    def grid(self):
        svg = self.svg
        many = self.high - self.low > 2.2
        for decade in range(math.floor(self.low), math.ceil(self.high) + 1):
            for step in (1, 2, 5):
                y = decade + math.log10(step)
                if not self.low <= y <= self.high:
                    continue
                at_y = self.xy(1, 10 ** y)[1]
                svg.line(self.left, at_y, self.left + self.width, at_y, "#dddddd" if step == 1 else "#f0f0f0")
                if step == 1 or not many:
                    svg.text(self.left - 6, at_y + 3.5, short(float(f"{10 ** y:.3g}")), 10, "end", "#555")
        for lanes in self.lanes:
            x = self.xy(lanes, 10 ** self.low)[0]
            svg.line(x, self.top, x, self.top + self.height, "#f0f0f0")
            svg.text(x, self.top + self.height + 14, str(lanes), 10, "middle", "#555")
        svg.add("rect", x=float(self.left), y=float(self.top), width=float(self.width), height=float(self.height),
                fill="none", stroke="#999")

    def series(self, points, color, width=2.0, dash="", shape="dot"):
        xys = [self.xy(*p) for p in points]
        if len(xys) > 1:
            self.svg.path(xys, color, width, dash)
        for x, y in xys if shape else []:
            self.svg.mark(x, y, color, shape)


# ---- what stands in a panel: (title, colour, width, dash, shape, points)

def other_series(others, name):
    known = others.get(name, {})
    torch, ort = known.get("PyTorch CUDA graph", {}), known.get("ORT WebGPU", {})
    numbers = lambda d: sorted((int(n), ms) for n, ms in d.items())  # noqa: E731
    return [("PyTorch CUDA graph, true batch", ORANGE, 1.0, "2 3", "triangle", numbers(torch.get("batch", {}))),
            ("PyTorch, a CUDA stream for each, by hand", RED, 1.0, "", "diamond", numbers(torch.get("streams", {}))),
            ("ORT WebGPU, true batch", PURPLE, 1.0, "2 3", "square", numbers(ort.get("batch", {}))),
            ("ORT WebGPU, clones in one graph", "#b58ad0", 1.0, "", "diamond", numbers(ort.get("clones", {})))]


def panel_series(model, others):
    lanes = points(model)
    one = at(lanes, 1)
    alone = [(n, n * one) for n, _ in lanes] if one else []
    return [("braid, one run after the other", GREY, 1.5, "6 4", None, alone),
            ("braid, true batch", GREEN, 2.0, "", "dot", points(model, True)),
            ("braid, lanes of the batch-1 file", BLUE, 2.6, "", "dot", lanes)] + other_series(others, model["name"])


def legend(svg, entries, left, top, columns, step):
    for i, (title, color, width, dash, shape, _) in enumerate(entries):
        x, y = left + step * (i % columns), top + 18 * (i // columns)
        svg.path([(x, y), (x + 26, y)], color, width, dash)
        if shape:
            svg.mark(x + 13, y, color, shape)
        svg.text(x + 33, y + 4, title, 12)


def draw_lanes(results, others, path):
    models = [m for m in results["models"] if points(m)]
    columns = min(3, len(models))
    kinds = len({s[0] for m in models for s in panel_series(m, others) if s[5]})
    wide, tall, head = 360, 290, 56 + 18 * math.ceil(kinds / 3)
    svg = Svg(max(columns * wide + 20, 3 * wide - 60), head + tall * math.ceil(len(models) / columns) + 10)
    shown = {}
    for i, model in enumerate(models):
        series = [s for s in panel_series(model, others) if s[5]]
        shown |= {s[0]: s for s in series}
        lanes, values = [n for n, _ in points(model)], [v for s in series for _, v in s[5]]
        panel = Panel(svg, 58 + wide * (i % columns), head + 26 + tall * (i // columns), wide - 78, tall - 70, lanes, values)
        svg.text(panel.left, panel.top - 8, model["title"], 13, weight="bold")
        panel.grid()
        for _, color, width, dash, shape, where in series:
            panel.series([p for p in where if p[0] <= max(lanes)], color, width, dash, shape)
        svg.text(panel.left + panel.width / 2, panel.top + panel.height + 29, "inferences", 11, "middle", "#555")
        svg.text(panel.left - 6, panel.top - 8, "ms", 11, "end", "#555")
    svg.text(20, 26, f"Time of N inferences on {device(results)}", 16, weight="bold")
    legend(svg, list(shown.values()), 20, 50, 3, 330)
    svg.save(path)


def draw_gain(results, path):
    models = [m for m in results["models"] if at(points(m), 1)]
    series = [(m["title"], PALETTE[i % len(PALETTE)], 2.2, "", "dot",
               [(n, n * at(points(m), 1) / ms) for n, ms in points(m)]) for i, m in enumerate(models)]
    lanes = sorted({n for s in series for n, _ in s[5]})
    svg = Svg(780, 470)
    panel = Panel(svg, 58, 52, 500, 370, lanes, [v for s in series for _, v in s[5]] + [1, max(lanes)])
    svg.text(20, 26, f"Items per second, one by one = 1, {device(results)}", 16, weight="bold")
    panel.grid()
    panel.series([(n, n) for n in lanes], GREY, 1.2, "6 4", None)
    for _, color, width, dash, shape, where in series:
        panel.series(where, color, width, dash, shape)
    svg.text(panel.left + panel.width / 2, panel.top + panel.height + 32, "inferences in one run", 11, "middle", "#555")
    ordered = sorted(series, key=lambda s: -s[5][-1][1])
    legend(svg, [("N for the price of one", GREY, 1.2, "6 4", None, [])] + ordered, 578, 70, 1, 0)
    svg.save(path)


# ---- the table

def device(results):
    return next((r["device"] for m in results["models"] for r in m.get("rows", []) if "device" in r), "?")


def number(value):
    return "" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def print_table(results, others):
    print(f"Device times in ms on {device(results)}, float32, {results['date']}; N lanes of the batch-1 file in one run:\n")
    print("| model | 1 | 8 | 64 | 256 | time(64)/time(1) | gain at 64 | true batch of 64 | its throughput reached | "
          "64, free order | 64 by PyTorch: batch / streams by hand | 64 by ORT WebGPU: batch / clones |")
    print("|---|" + "--:|" * 11)
    for model in results["models"]:
        lanes, batch = points(model), points(model, True)
        if not lanes:
            print(f"| {model['title']} | {model.get('error', 'not measured')} |" + " |" * 10)
            continue
        one, many, whole = at(lanes, 1), at(lanes, 64), at(batch, 64)
        torch, ort = (others.get(model["name"], {}).get(k, {}) for k in ("PyTorch CUDA graph", "ORT WebGPU"))
        pair = lambda d, a, b: " / ".join(number(d.get(k, {}).get("64")) or "–" for k in (a, b)) if d else ""  # noqa: E731
        cells = [model["title"]] + [number(at(lanes, n)) for n in (1, 8, 64, 256)]
        cells += [number(many / one), f"{64 * one / many:.1f}"] if one and many else ["", ""]
        cells += [number(whole), f"{100 * whole / many:.0f} %"] if whole and many else ["", ""]
        free = model.get("free_order", {"error": ""})
        cells += ["" if "error" in free else number(clock(free))]
        print(f"| {' | '.join(cells + [pair(torch, 'batch', 'streams'), pair(ort, 'batch', 'clones')])} |")


def main():
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(sys.argv[2])
    known = json.loads((HERE / "others.json").read_text())
    others = known["models"] if known["device"] in device(results) else {}
    folder.mkdir(parents=True, exist_ok=True)
    draw_lanes(results, others, folder / "lanes.svg")
    draw_gain(results, folder / "gain.svg")
    print_table(results, others)


if __name__ == "__main__":
    main()
