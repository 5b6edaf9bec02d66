# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw wall time over the number of objects, one panel per phase and latency, one line per tool: chart.py FILE.json."""

import json
import pathlib
import sys
import typing as t

import matplotlib as mpl

mpl.use("Agg")  # a file, no window

import matplotlib.pyplot as plt


def draw(rows: list[dict[str, t.Any]], path: pathlib.Path) -> None:
    """Write the chart; the bars at each point go from the fastest to the slowest repeat."""
    phases = list(dict.fromkeys(row["phase"] for row in rows))
    latencies = sorted({row["latency_ms"] for row in rows})
    counts = sorted({row["objects"] for row in rows})
    tools = list(dict.fromkeys(row["tool"] for row in rows))
    size = (4.2 * len(phases), 3.6 * len(latencies))
    figure, panels = plt.subplots(len(latencies), len(phases), figsize=size, squeeze=False)
    for line, latency in enumerate(latencies):
        for column, phase in enumerate(phases):
            panel = panels[line][column]
            panel.set(xscale="log", yscale="log", title=f"{phase}, {latency} ms", xlabel="objects", ylabel="seconds")
            for tool in tools:
                _line(panel, tool, [r for r in rows if (r["tool"], r["phase"], r["latency_ms"]) == (tool, phase, latency)])
            panel.set_xlim(0.6 * counts[0], 1.7 * counts[-1])
            panel.set_xticks(counts, [f"{count:,}" for count in counts], minor=False)
            panel.set_xticks([], minor=True)
            panel.grid(visible=True, alpha=0.3)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize="small")
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _line(panel: t.Any, tool: str, rows: list[dict[str, t.Any]]) -> None:
    rows = sorted(rows, key=lambda row: row["objects"])
    median = [row["wall_s_median"] for row in rows]
    low = [row["wall_s_median"] - row["wall_s_min"] for row in rows]
    high = [row["wall_s_max"] - row["wall_s_median"] for row in rows]
    panel.errorbar([row["objects"] for row in rows], median, yerr=[low, high], marker="o", capsize=3, label=tool)


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1])
    draw(json.loads(source.read_text(encoding="utf-8")), source.with_suffix(".png"))
