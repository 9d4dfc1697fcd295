#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/performance.svg from the first table of docs/performance.md.

usage: performance_chart.py PAGE SVG

Samples and slices: Rill beside the machine's limit and TorchRL. A figure is on
the page first; a test compares.
"""
import math
import re
import sys
import xml.sax.saxutils

# Rows of "What you get" that are drawn, and what the chart calls them.
SHOWN = {
    "uniform sample of 256, 47 B, 1M rows": "uniform, rows of 47 B",
    "uniform sample of 256, 3 KB": "uniform, rows of 3 KB",
    "uniform sample of 256, 56 KB": "uniform, rows of 56 KB",
    "prioritized sample and update of 256, 47 B, 1M rows": "prioritized, with update, 1M rows",
    "the same, 10M rows": "prioritized, with update, 10M rows",
    "slices 256 x 16, 5M of 6M rows, 1,000 written before each": "slices of 16 steps, while writing",
}
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
FIRST, LAST = -6, -2  # The axis: 1 us to 10 ms.
LEFT, RIGHT, WIDTH = 260, 652, 880
ROW, TOP = 28, 64

STYLE = """\
  .page { fill: #ffffff; stroke: #d0d7de; }
  text { fill: #1f2328; font: 14px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
  .title { font-weight: 600; font-size: 15px; }
  .small { fill: #59636e; font-size: 12px; }
  .grid { stroke: #d0d7de; } .way { stroke: #afb8c1; stroke-width: 2; }
  .rill { fill: #0969da; } .limit { fill: none; stroke: #1f2328; stroke-width: 2; } .torchrl { fill: #bc4c00; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d; }
    text { fill: #f0f6fc; } .small { fill: #9198a1; }
    .grid { stroke: #3d444d; } .way { stroke: #656c76; }
    .rill { fill: #4493f8; } .limit { stroke: #f0f6fc; } .torchrl { fill: #f0883e; }
  }
"""


def seconds(cell):
    """Of a cell "1.95 us"; None where it is no single time."""
    match = re.fullmatch(r"([\d.,]+) (ns|us|ms|s)", cell)
    return float(match[1].replace(",", "")) * SECONDS[match[2]] if match else None


def rows_of(page):
    """[(label, {"rill": s, "limit": s, "torchrl": s})] of the first table."""
    table = re.search(r"^## What you get$.*?((?:^\|[^\n]*\n)+)", page, re.M | re.S)
    if not table:
        raise SystemExit("performance_chart: the page has no section \"What you get\" with a table")
    head, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]
    columns = {name: head.index(title) for name, title in
               (("rill", "Rill"), ("limit", "limit"), ("torchrl", "TorchRL"))}
    found = {row[0]: {name: seconds(row[i]) for name, i in columns.items() if seconds(row[i])} for row in cells}
    for name in SHOWN:
        if "rill" not in found.get(name, {}) or len(found[name]) < 2:
            raise SystemExit("performance_chart: no row \"%s\" with Rill's time and another" % name)
    return [(SHOWN[name], found[name]) for name in SHOWN]


def caption_of(page):
    """On what it was measured."""
    machine = re.search(r"\*\*Machine:\*\* (.*?),", page)
    torchrl = re.search(r"TorchRL is ([\d.]+ with torch [\d.]+)", page)
    if not machine or not torchrl:
        raise SystemExit("performance_chart: the page does not say \"**Machine:** ...,\" and \"TorchRL is N with torch N\"")
    return "%s; TorchRL %s, one thread" % (machine[1], torchrl[1])


def x_of(time):
    return LEFT + (RIGHT - LEFT) * (math.log10(time) - FIRST) / (LAST - FIRST)


def mark(kind, x, y):
    if kind == "rill":
        return '<circle class="rill" cx="%.1f" cy="%.1f" r="6"/>' % (x, y)
    if kind == "torchrl":
        return '<rect class="torchrl" x="%.1f" y="%.1f" width="11" height="11"/>' % (x - 5.5, y - 5.5)
    return '<path class="limit" d="M%.1f %.1fv16"/>' % (x, y - 8)


def text(x, y, words, kind="", anchor="start"):
    return '<text x="%.1f" y="%.1f"%s text-anchor="%s">%s</text>' % (
        x, y, ' class="%s"' % kind if kind else "", anchor, xml.sax.saxutils.escape(words))


def says(times):
    """What the row comes to, in words."""
    words = []
    if "torchrl" in times:
        words.append("%.0f times as fast" % (times["torchrl"] / times["rill"]))
    if "limit" in times:
        words.append("%.2f of the limit" % (times["rill"] / times["limit"]))
    return ", ".join(words)


def chart(page):
    """The SVG, as text."""
    rows = rows_of(page)
    out = [text(16, TOP - 8, caption_of(page), "small")]
    places = [x_of(10.0**power) for power in range(FIRST, LAST + 1)]
    out += ['<path class="grid" d="M%.1f %dv%d"/>' % (x, TOP + ROW // 2, ROW * len(rows)) for x in places]
    for number, (label, times) in enumerate(rows):
        y = TOP + ROW * (number + 1)
        out.append(text(LEFT - 14, y + 5, label, anchor="end"))
        ends = [x_of(time) for time in times.values()]
        out.append('<path class="way" d="M%.1f %.1fH%.1f"/>' % (min(ends), y, max(ends)))
        out += [mark(kind, x_of(time), y) for kind, time in sorted(times.items(), reverse=True)]
        out.append(text(RIGHT + 14, y + 4, says(times), "small"))
    bottom = TOP + ROW * (len(rows) + 1)
    out += [text(x, bottom + 8, words, "small", "middle")
            for x, words in zip(places, ("1 us", "10 us", "100 us", "1 ms", "10 ms"))]
    out.append(text((LEFT + RIGHT) / 2, bottom + 30, "time of a batch of 256, logarithmic; further left is faster",
                    "small", "middle"))
    legend, x = [], 476
    for kind, words in (("rill", "Rill"), ("limit", "the machine's limit"), ("torchrl", "TorchRL")):
        legend += [mark(kind, x, 27), text(x + 14, 32, words)]
        x += 50 + 7.2 * len(words)
    height = bottom + 46
    return "\n".join(
        ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">' %
         (WIDTH, height, WIDTH, height),
         "<title>What a sample takes: Rill, the machine's limit, TorchRL</title>", "<style>", STYLE + "</style>",
         '<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>' % (WIDTH - 1, height - 1),
         text(16, 32, "What a sample takes", "title")] + legend + out + ["</svg>", ""])


def main(page, svg):
    with open(page, encoding="utf-8") as f:
        drawn = chart(f.read())
    with open(svg, "w", encoding="utf-8") as f:
        f.write(drawn)


if __name__ == "__main__":
    main(*sys.argv[1:])
