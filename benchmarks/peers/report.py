# SPDX-License-Identifier: Apache-2.0
"""The tables of benchmarks/compare: medians with their spread, and ratios to Rill."""
import statistics


def in_words(us):
    for unit, size in (("s", 1e6), ("ms", 1e3), ("us", 1.0)):
        if us >= size:
            return "%.3g %s" % (us / size, unit)
    return "%.3g ns" % (us * 1e3)


def in_digits(ratio):
    return "%.0f" % ratio if ratio >= 10 else "%.2g" % ratio


def spread_of(turns):
    """Half of what lies between the least and the most, of the median, in percent."""
    return 50 * (max(turns) - min(turns)) / statistics.median(turns)


def cell(turns, ours, frames):
    """A median, its spread and its ratio to `ours`; "-" where there is none."""
    if not isinstance(turns, list) or not turns:
        return "-"
    median = statistics.median(turns)
    words = "%.3g M/s" % (frames / median) if frames else in_words(median)
    ratio = "" if turns is ours or not ours else ", **%s x**" % in_digits(median / statistics.median(ours))
    return "%s ± %.0f %%%s" % (words, spread_of(turns), ratio)


def measured(turns):
    return isinstance(turns, list) and bool(turns)


def losing(results):
    """Lines for the cases in which somebody else is faster than the first name."""
    first = results["participants"][0]["name"]
    lines = []
    for group in results["groups"]:
        for case in group["cases"]:
            ours = case["us"].get(first)
            if not measured(ours):
                continue
            for name, turns in case["us"].items():
                if measured(turns) and statistics.median(turns) < 0.95 * statistics.median(ours):
                    lines.append("- %s, %s: %s takes %.2f of %s's time." % (
                        group["title"], case["title"], name,
                        statistics.median(turns) / statistics.median(ours), first))
    return lines


def table_of(group, names):
    """A group's cases, with the columns that have a figure in it."""
    shown = [name for name in names if any(measured(case["us"].get(name)) for case in group["cases"])]
    first = names[0]
    lines = ["| | %s |" % " | ".join(shown), "|---|%s" % ("---|" * len(shown))]
    for case in group["cases"]:
        ours = case["us"].get(first)
        ours = ours if measured(ours) else None
        cells = (cell(case["us"].get(name), ours, case["frames"]) for name in shown)
        lines.append("| %s | %s |" % (case["title"], " | ".join(cells)))
    return lines


def report(results):
    names = [one["name"] for one in results["participants"]]
    lines = ["# Rill beside its peers", "",
             "**Machine:** %s; one core, all in turns on it." % results["machine"],
             "A figure is the median of %d turns of %g s, with half of what lies between the least and the most. Ratios "
             "say how many times %s's time it is." % (results["turns"], results["seconds"], names[0]), ""]
    for one in results["participants"]:
        if one["missing"] is not None:
            lines.append("- **%s is missing:** %s" % (one["name"], one["missing"]))
        elif one["version"]:
            lines.append("- %s: %s" % (one["name"], one["version"]))
    for key in results["probes"][0]:
        values = [probe[key] for probe in results["probes"]]
        lines.append("- The core alone, %s, between the groups: %.3g to %.3g" % (key, min(values), max(values)))
    for group in results["groups"]:
        if group["cases"]:
            lines += ["", "## " + group["title"], ""] + table_of(group, names)
    lines += ["", "## Where %s is not the fastest" % names[0], ""] + (losing(results) or ["Nowhere, by 5 % or more."])
    reasons = sorted({"- %s, %s, %s: %s" % (group["title"], case["title"], name, turns)
                      for group in results["groups"] for case in group["cases"] for name, turns in case["us"].items()
                      if not isinstance(turns, list) and turns != "it has none"
                      and all(turns != one["missing"] for one in results["participants"])})
    if reasons:
        lines += ["", "## Not measured", ""] + reasons
    return "\n".join(lines) + "\n"
