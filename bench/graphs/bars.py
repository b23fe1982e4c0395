"""Grouped bars over a logarithmic axis, as SVG."""
import math
from xml.sax.saxutils import escape

COLOURS = ["#9aa0a8", "#d9d4e7", "#f7b6a0", "#ffe08a", "#8ecae6", "#b7e4a7", "#a5b4fc", "#f08080"]
LEFT, TOP, HEIGHT, BAR, GAP, LEGEND = 70, 70, 300, 26, 34, 18


def text(x, y, what, size=12, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" {more}>{escape(what)}</text>'


def short(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def bars(title, groups, series, values, unit="ms"):
    """values[group][series]: a number or None (no bar)."""
    there = [v for group in groups for v in values[group].values() if v]
    if not there:
        return '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>\n'
    low, high = math.floor(math.log10(min(there))), math.ceil(math.log10(max(there)) + 0.05)
    high = max(high, low + 1)
    group_width = BAR * len(series) + GAP
    width = LEFT + group_width * len(groups) + 20
    legend_width = max(len(s) for s in series) * 7.5 + 34
    columns = max(1, int((width - LEFT) / legend_width))
    bottom = TOP + LEGEND * math.ceil(len(series) / columns) + HEIGHT
    place = lambda v: bottom - HEIGHT * (math.log10(v) - low) / (high - low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 44}" '
           'font-family="DejaVu Sans, Helvetica, sans-serif" fill="#1c1c1c">',
           '<rect width="100%" height="100%" fill="#ffffff"/>', text(LEFT, 28, title, 16, more='font-weight="bold"')]
    for i, name in enumerate(series):
        x, y = LEFT + i % columns * legend_width, 44 + i // columns * LEGEND
        out += [f'<rect x="{x:.1f}" y="{y}" width="12" height="12" fill="{COLOURS[i % len(COLOURS)]}" stroke="#55585e" '
                'stroke-width="0.5"/>', text(x + 18, y + 10.5, name)]
    for power in range(low, high + 1):
        y = place(10.0**power)
        out += [f'<line x1="{LEFT}" x2="{width - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d5d7db"/>',
                text(LEFT - 8, y + 4, f"{10.0**power:g} {unit}", 11, "end")]
    for g, group in enumerate(groups):
        start = LEFT + GAP / 2 + g * group_width
        out.append(text(start + BAR * len(series) / 2, bottom + 22, group, 13, "middle"))
        for i, name in enumerate(series):
            value = values[group].get(name)
            if not value:
                continue
            x, y = start + i * BAR, place(value)
            out += [f'<rect x="{x:.1f}" y="{y:.1f}" width="{BAR - 3}" height="{max(bottom - y, 0.5):.1f}" '
                    f'fill="{COLOURS[i % len(COLOURS)]}" stroke="#55585e" stroke-width="0.5"/>',
                    text(x + BAR / 2 - 1, y - 4, short(value), 8.5, "middle")]
    return "\n".join(out) + "\n</svg>\n"
