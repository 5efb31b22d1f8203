"""Figures, tables and the page of this reproduction."""

import plots
from findings import MOVED, SMALL, moving, predicted, remote
from laboratory import MACHINES, PROFILED
from programs import EXCLUDED, PROGRAMS, TRANSFORMED
from recordings import FOLDER
from sharing import CLASSES

from web import document, figure, table, verdicts, write_csv

LAB = "laboratory: exact counts of accesses to the programs' arrays"
MODEL = "simulation: a model's prediction, no measurement"
FORMS = ["default", PROFILED, "redistribute", "iterate", "matched"]


def draw(data):
    names = list(PROGRAMS)
    shares = {n: data["behaviour"][n]["sharing"] for n in names}
    plots.grouped(FOLDER / "figure2.svg", names, {m: [remote(data, n, "default", m) for n in names] for m in MACHINES},
                  "remote accesses (%)", (0, 100), with_average=False)
    plots.stacked(FOLDER / "figure3a.svg", names, {c: [shares[n]["default"][c] for n in names] for c in CLASSES}, "pages (%)")
    remaining = [100 * remote(data, n, PROFILED) / max(0.01, remote(data, n, "default")) for n in TRANSFORMED]
    gain = [100 * (gained(data, n, SMALL, 8, PROFILED) - 1) for n in TRANSFORMED]
    plots.grouped(FOLDER / "figure3b.svg", TRANSFORMED, {"predicted improvement": gain, "remote accesses left": remaining},
                  "% of default", with_average=False)
    plots.grouped(FOLDER / "figure8.svg", MOVED, {form: [remote(data, n, form) for n in MOVED]
                                                  for form in ("default", "redistribute")},
                  "remote accesses (%)", with_average=False)
    compared = ["default", PROFILED, "matched"]
    plots.grouped(FOLDER / "figure15a.svg", TRANSFORMED, {f: [remote(data, n, f) for n in TRANSFORMED] for f in compared},
                  "remote accesses (%)", with_average=False)
    traffic = {f: [predicted(data, n, SMALL, 8, f)["remote_traffic"] for n in TRANSFORMED] for f in compared}
    plots.grouped(FOLDER / "figure15a-traffic.svg", TRANSFORMED, traffic, "remote traffic (%)", with_average=False)
    uniform = {f: [shares[n][f]["uniformly shared"] for n in TRANSFORMED] for f in ("default", "matched")}
    plots.grouped(FOLDER / "figure15b.svg", TRANSFORMED, uniform, "uniformly shared pages (%)", with_average=False)
    improvement = {f: [100 * (gained(data, n, SMALL, 8, f) - 1) for n in TRANSFORMED] for f in (PROFILED, "matched")}
    plots.grouped(FOLDER / "figure15c.svg", TRANSFORMED, improvement, "predicted improvement (%)")
    for machine in MACHINES:
        scaling(data, machine)


def scaling(data, machine):
    """One group of bars for each program and number of threads, the means last."""
    bars = [(n, t) for n in TRANSFORMED for t in counts(data, machine)]
    series = {}
    for form in ("default", "matched"):
        each = [speedup(data, n, machine, t, form) for n, t in bars]
        means = [plots.average([v for v, (_, threads) in zip(each, bars) if threads == t]) for t in counts(data, machine)]
        series[form] = each + means
    labels = [f"{n}, {t}" for n, t in [*bars, *(("average", t) for t in counts(data, machine))]]
    plots.grouped(FOLDER / f"figure16-{machine}.svg", labels, series, "predicted speed-up over 1 thread", with_average=False)


def counts(data, machine):
    return sorted(int(t) for t in data["predictions"][TRANSFORMED[0]][machine] if t != "1")


def gained(data, program, machine, threads, form):
    return (predicted(data, program, machine, threads, "default")["seconds"]
            / predicted(data, program, machine, threads, form)["seconds"])


def speedup(data, program, machine, threads, form):
    return (predicted(data, program, machine, 1, "default")["seconds"]
            / predicted(data, program, machine, threads, form)["seconds"])


def remote_rows(data):
    rows = []
    for name, program in PROGRAMS.items():
        for machine, runs in data["laboratory"].items():
            cells = [runs.get(f"{name} {form}") for form in FORMS]
            shown = [f"{run['remote']:.1f}" if run else "" for run in cells]
            said = program.remote if machine == SMALL and program.remote is not None else ""
            rows.append([f"{name}, {machine}", *shown, said])
    return rows


def migration_rows(data):
    rows = []
    for name in MOVED:
        run = data["laboratory"][SMALL][f"{name} redistribute"]
        default, computing, migrating = moving(data, name)
        bytes_moved = data["behaviour"][name]["migrated_bytes"]
        rows.append([name, f"{run['migrated_bytes'] / 1e6:.1f}", f"{bytes_moved / 1e6:.0f}", f"{default:.2f}",
                     f"{computing:.2f}", f"{migrating:.2f}", f"{(computing + migrating) / default:.1f}"])
    return rows


def sharing_rows(data):
    return [[f"{name}, {form}", *(f"{shares[c]:.1f}" for c in CLASSES)]
            for name in PROGRAMS for form, shares in data["behaviour"][name]["sharing"].items()]


def scaling_rows(data):
    rows = []
    for machine in MACHINES:
        for name in TRANSFORMED:
            for threads in counts(data, machine):
                for form in ("default", PROFILED, "matched"):
                    p = predicted(data, name, machine, threads, form)
                    s = speedup(data, name, machine, threads, form)
                    low, high = p["range"]
                    rows.append([f"{name}, {form}", machine, threads, f"{p['seconds']:.3f}", f"{low:.3f}–{high:.3f}",
                                 f"{s:.1f}", f"{100 * s / threads:.0f}", f"{gained(data, name, machine, threads, form):.2f}",
                                 f"{p['remote_traffic']:.1f}"])
    return rows


def agreement_rows(data):
    return [[f"{name}, {form}", f"{a:.1f}", f"{b:.1f}"] for name, forms in data["agreement"].items()
            for form, (a, b) in forms.items()]


def tabled(name, heads, rows):
    """The table, and the same as a CSV file beside the page."""
    write_csv(FOLDER / f"{name}.csv", heads, rows)
    return table(heads, rows) + f'<p><a href="{name}.csv">{name}.csv</a></p>'


def write(data, found):
    notes = "".join(f"<li>{name}: {p.note}</li>" for name, p in PROGRAMS.items() if p.note)
    parts = [
        "<p>The figures of Majo, Gross: “Matching Memory Access Patterns and Data Placement for NUMA Systems” (CGO 2012), "
        "for programs of ours that are built like theirs. Shares of remote accesses are counted in the laboratory "
        "(<code>nodewise lab</code>, a real Linux, 4 KiB pages); times are predicted by <code>nodewise simulate</code> "
        "and are no measurements. The paper's shares are of memory traffic, behind caches; a laboratory has none. "
        "<code>docs/reproduce-majo.md</code> explains each figure.</p>",
        f"<ul>{notes}</ul>",
        "<h2>The paper's findings</h2>", verdicts(found),
        "<h2>Remote accesses, form by form</h2>",
        tabled("remote", ["% of accesses; lab", *FORMS, "paper, default"], remote_rows(data)),
        figure("figure2", f"Figure 2. Remote accesses of the default form ({LAB}). The paper leaves {', '.join(EXCLUDED)} out "
                          "from here on."),
        figure("figure3a", "Figure 3(a). Pages that the computation uses, by sharing class (recorded, exact)."),
        figure("figure3b", f"Figure 3(b). Placing each page where a profile has it accessed most, on {SMALL} with 8 threads: "
                           f"remote accesses left ({LAB}) and improvement ({MODEL})."),
        "<h2>Moving data inside the program</h2>",
        figure("figure8", f"Figure 8(a). Remote accesses by default and with redistribution ({LAB})."),
        "<p>Computing is taken to be as fast as in the matched form; migrating is added to it (Figure 8(b)).</p>",
        tabled("migration", ["program", "migrated in the lab (MB, the kernel's count)", "at the recorded size (MB)",
                             "default (s, predicted)", "computing (s, predicted)", "migrating at 0.3 s/GB (s)",
                             "total over default"], migration_rows(data)),
        "<h2>Program transformations</h2>",
        figure("figure15a", f"Figure 15(a). Remote accesses on {SMALL} ({LAB})."),
        figure("figure15a-traffic", f"Figure 15(a), as traffic: lines fetched from the other node of {SMALL} ({MODEL})."),
        figure("figure15b", "Figure 15(b). Uniformly shared pages (recorded, exact). Profile-based placement shares as the default does: "
                            "it moves pages, not accesses."),
        tabled("sharing", ["% of pages used by the computation", *CLASSES], sharing_rows(data)),
        figure("figure15c", f"Figure 15(c). Improvement over the default form on {SMALL}, 8 threads ({MODEL})."),
        "<h2>Scalability</h2>",
        *(figure(f"figure16-{m}", f"Figure 16. {m}: by number of threads, speed-up over one thread of the default form "
                                        f"({MODEL}).") for m in MACHINES),
        tabled("scaling", ["simulation", "machine", "threads", "seconds", "range", "speed-up", "efficiency (%)",
                           "over default", "remote traffic (%)"], scaling_rows(data)),
        "<h2>Does the simulator know where pages were?</h2>",
        "<p>It is told what libnodewise described, page by page. The same forms at the laboratory's sizes, remote accesses "
        "in per cent:</p>",
        tabled("agreement", ["program", "laboratory", "simulation"], agreement_rows(data)),
    ]
    return document("Matching access patterns and data placement, on our workloads", parts)
