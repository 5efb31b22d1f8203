"""The page of this reproduction."""

from checks import remote
from laboratory import PROFILED
from programs import COUNTS, LARGE, MOVED, PROGRAMS, SMALL, SWEEPS

from web import document, figure, table, verdicts

LAB = "laboratory: exact counts of accesses to the programs' arrays"
MODEL = "simulation: a model's prediction, no measurement"


def remote_table(data):
    labels = ("default", PROFILED, "redistribute", "matched")
    rows = []
    for name, program in PROGRAMS.items():
        cells = [f"{remote(data, name, label):.1f}" if f"{name} {label}" in data["lab"] else "" for label in labels]
        rows.append([name, *cells, "" if program.remote is None else program.remote])
    return table(["% remote", *labels, "the paper, default"], rows)


def moving_table(data):
    rows = [[p, f"{data['lab'][f'{p} redistribute']['migrated'] / 1e6:.1f}", f"{one['bytes'] / 1e6:.0f}", f"{one['default']:.2f}",
             f"{one['computing']:.2f}"] for p, one in ((p, data["moving"][p]) for p in MOVED)]
    return table(["program", "migrated in the laboratory (MB)", "at the recorded size (MB)", "default (s, predicted)",
                  "computing where all is local (s, predicted)"], rows)


def scaling_table(found):
    rows = []
    for program, repeats in found.items():
        for threads in map(str, COUNTS):
            for form, one in repeats[0]["scaling"]["threads"][threads].items():
                s = one["seconds"]
                rows.append([f"{program}, {form}", threads, f"{s['typical']:.3f}", f"{s['least']:.3f}–{s['most']:.3f}",
                             f"{one['remote lines']:.0f}", f"{one['busy']:.0f}"])
    return table(["first recording", "threads", "seconds", "range", "remote lines, %", "busiest controller, %"], rows)


def write(size, data, found, judged, inputs):
    checked = [[what, ours, "yes" if holds else "NO"] for what, ours, holds in inputs]
    parts = [
        "<p>The rows and figures of Majo, Gross: “Matching Memory Access Patterns and Data Placement for NUMA Systems” (CGO 2012), for "
        f"programs of ours that are built like theirs; size: {size}. Remote shares are counted in the laboratory "
        "(<code>nodewise lab</code>, a real "
        "Linux, 4 KiB pages), pages in recordings; times are predicted by <code>nodewise simulate</code>. "
        "<code>docs/reproduce-majo.md</code> explains each figure.</p>",
        "<h2>The paper's findings</h2>", verdicts(judged),
        "<h2>Remote accesses, form by form</h2>", remote_table(data),
        figure("figure2", f"Figure 2. Remote accesses of the default form on {SMALL} ({LAB})."),
        figure("figure3a", f"Figure 3(a). Pages of {', '.join(SWEEPS)} by sharing class (recorded, exact)."),
        "<h2>Moving data inside the program</h2>", moving_table(data),
        figure("figure8a", f"Figure 8(a). Remote accesses by default and with redistribution ({LAB})."),
        "<h2>Program transformations</h2>",
        figure("figure15a", f"Figures 3(b) and 15(a). Remote accesses on {SMALL} ({LAB})."),
        figure("figure15b", "Figure 15(b). Uniformly shared pages (recorded, exact)."),
        "<h2>Scalability</h2>",
        figure("figure16", f"Figure 16. {LARGE}: how much faster the transformed form is, by number of threads ({MODEL})."),
        scaling_table(found),
        "<h2>Inputs</h2><p>Read from the paper, or checks of our own; not judged.</p>", table(["", "found", "as it should be"], checked),
    ]
    return document("Matching access patterns and data placement, on our workloads", parts)
