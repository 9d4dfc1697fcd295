# SPDX-License-Identifier: Apache-2.0
"""Draws what benchmarks/compare measured: a row a case, a dot a participant."""
import math
import statistics
import xml.sax.saxutils

from report import measured

COLOURS = ("#0969da", "#54aeff", "#bc4c00", "#8250df", "#1a7f37", "#bf3989", "#9a6700", "#57606a", "#cf222e")
LEFT, RIGHT, WIDTH, ROW = 330, 860, 900, 24
STYLE = """\
  .page { fill: #ffffff; stroke: #d0d7de; }
  text { fill: #1f2328; font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
  .title { font-weight: 600; font-size: 15px; } .group { font-weight: 600; }
  .grid { stroke: #d0d7de; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d; } text { fill: #f0f6fc; } .grid { stroke: #3d444d; }
  }
"""


def text(x, y, words, kind="", anchor="start"):
    return '<text x="%.1f" y="%.1f"%s text-anchor="%s">%s</text>' % (
        x, y, ' class="%s"' % kind if kind else "", anchor, xml.sax.saxutils.escape(words))


def in_short(power):
    unit, size = (("ns", 1e-3), ("us", 1.0), ("ms", 1e3), ("s", 1e6))[min(3, max(0, (power + 3) // 3))]
    return "%g %s" % (10.0**power / size, unit)


def chart(results):
    """The SVG, as text; times are on a logarithmic axis."""
    names = [one["name"] for one in results["participants"]]
    medians = [statistics.median(turns) for group in results["groups"] for case in group["cases"]
               for turns in case["us"].values() if measured(turns)]
    if not medians:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>\n'
    first = math.floor(math.log10(min(medians)))
    last = max(first + 1, math.ceil(math.log10(max(medians))))
    names = [name for name in names if any(measured(case["us"].get(name)) for group in results["groups"]
                                           for case in group["cases"])]
    colour_of = dict(zip(names, COLOURS))

    def x_of(us):
        return LEFT + (RIGHT - LEFT) * (math.log10(us) - first) / (last - first)

    out, y = [], 70
    for group in results["groups"]:
        if not group["cases"]:
            continue
        out.append(text(16, y + 5, group["title"], "group"))
        y += ROW
        for case in group["cases"]:
            out.append(text(LEFT - 14, y + 5, case["title"], anchor="end"))
            # The first name is drawn last, above the others.
            for name in reversed(names):
                if measured(case["us"].get(name)):
                    out.append('<circle cx="%.1f" cy="%d" r="5" fill="%s"><title>%s</title></circle>' % (
                        x_of(statistics.median(case["us"][name])), y, colour_of[name],
                        xml.sax.saxutils.escape(name)))
            y += ROW
    grid = []
    for power in range(first, last + 1):
        x = x_of(10.0**power)
        grid.append('<path class="grid" d="M%.1f 58V%d"/>' % (x, y))
        grid.append(text(x, y + 16, in_short(power), anchor="middle"))
    legend, x = [], 16
    for name in names:
        legend += ['<circle cx="%d" cy="44" r="5" fill="%s"/>' % (x + 5, colour_of[name]), text(x + 15, 49, name)]
        x += 34 + 7 * len(name)
    height = y + 34
    return "\n".join(
        ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">' %
         (WIDTH, height, WIDTH, height), "<title>Rill beside its peers: time of a call</title>",
         "<style>", STYLE + "</style>",
         '<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>' % (WIDTH - 1, height - 1),
         text(16, 26, "Time of a call, logarithmic; further left is faster", "title")] + grid + legend + out +
        ["</svg>", ""])
