"""Figures, tables and the page of this reproduction."""

import plots
from findings import at, gains, speedup
from programs import ALGORITHMS, COUNTS, OTHERS, PROGRAMS, table1
from recordings import FOLDER, MACHINE, START

from web import document, escape, figure, table, verdicts, write_csv

STATIC = "locality"
BARS = {"round-robin": START, **ALGORITHMS, "static optimum": STATIC}
HEADS = ["migrations", "ping-pongs", "multiple", "incorrect"]


def draw(data):
    for ratio in data["ratios"]:
        def relative(policy, r=ratio):
            return [1 / speedup(data, p, policy, r) for p in PROGRAMS]
        plots.grouped(FOLDER / f"figure2-{ratio}.svg", PROGRAMS, {name: relative(policy) for name, policy in BARS.items()},
                      "time over unoptimised", with_average=False)
        others = {"round-robin": START, **{o: o for o in OTHERS}, "static optimum": STATIC}
        plots.grouped(FOLDER / f"others-{ratio}.svg", PROGRAMS, {name: relative(policy) for name, policy in others.items()},
                      "time over unoptimised", with_average=False)
    for program in PROGRAMS:
        plots.curves(FOLDER / f"sweep-{program}.svg", data["ratios"],
                     {name: list(gains(data, program, policy).values()) for name, policy in BARS.items()},
                     "remote over local latency", "speed-up")
        plots.curves(FOLDER / f"local-{program}.svg", None, {name: data["programs"][program]["local"][policy]
                                                             for name, policy in BARS.items()},
                     "share of the run", "local accesses (%)")


def tabled(name, heads, rows):
    """The table, and the same as a CSV file beside the page."""
    write_csv(FOLDER / f"{name}.csv", heads, rows)
    return table(heads, rows) + f'<p><a href="{name}.csv">{name}.csv</a></p>'


def times_rows(data, policies):
    rows = []
    for program in PROGRAMS:
        for name, policy in policies.items():
            each = [f"{speedup(data, program, policy, r):.2f}" for r in data["ratios"]]
            local = at(data, program, policy, data["middle"])["local_fraction"]
            rows.append([f"{program}, {name}", *each, f"{100 * local:.0f} %"])
    return rows


def counts_rows(data):
    paper, rows = table1(), []
    for program in PROGRAMS:
        for name, policy in ALGORITHMS.items():
            found = at(data, program, policy, data["middle"])
            rows.append([f"{program}, {name}", *(found[key] for key in COUNTS), "", *paper[program, name]])
        for policy in OTHERS:
            found = at(data, program, policy, data["middle"])
            rows.append([f"{program}, {policy}", *(found[key] for key in COUNTS), "", *4 * ["–"]])
    return rows


def programs_rows(data):
    return [[name, row.says, p["pages"], f"{p['accesses']:,}", p["slices"], p["minimum_samples"],
             *(f"{100 * share:.0f} %" for share in p["best"])]
            for (name, row), p in zip(PROGRAMS.items(), data["programs"].values())]


def sensitivity(data):
    """What each choice that the paper leaves open is worth, one at a time."""
    parts = []
    for knob, by_value in data["sensitivity"].items():
        rows = []
        for value, found in by_value.items():
            for name, policy in ALGORITHMS.items():
                cells = [found[p][policy] for p in PROGRAMS]
                rows.append([f"{value}, {name}", *(f"{c['speedup']:.2f} ({c['migrations']}, {c['ping_pongs']})" for c in cells)])
        slug = knob.replace(" ", "-")
        parts.append(f"<h3>{escape(knob)}</h3>" + tabled(f"sensitivity-{slug}", [knob, *PROGRAMS], rows))
    return "".join(parts)


HELD = {
    "half-life": "How long counts are remembered decides what Out-W and In-W are worth. Each column is the whole sweep with "
                 "counts that halve every so many intervals.",
    "reading": "The paper's sentence on its threshold, read in other ways: <em>page</em> compares with the average of the page's "
               "own remote accesses, however few; <em>all</em> (<code>against=all</code>) asks for its difference from that "
               "average to exceed twice what a remote node accesses an average page of the home; <em>difference</em> asks for a "
               "difference of twice the page's own average over all four nodes. The constant is that of the runs above.",
}


def held(data):
    """Which findings hold, by choices that decide about them."""
    parts = []
    for knob, by_value in data["held"].items():
        claims = next(iter(by_value.values()))
        rows = [[claim, *("holds" if found[claim] else "does not" for found in by_value.values())] for claim in claims]
        rows.append(["all in all", *(sum(found.values()) for found in by_value.values())])
        parts.append(f"<h3>Findings by {knob}</h3><p>{HELD[knob]}</p>"
                     + tabled(f"findings-by-{knob}", ["finding", *by_value], rows))
    return "".join(parts)


def write(data, found):
    middle, ratios = data["middle"], data["ratios"]
    quick = "<p><strong>A quick run</strong>: <code>make reproduce-ars</code> has the figures.</p>" if data["quick"] else ""
    parts = [quick,
             "<p>Figure 2 and Table 1 of Tao, Schulz, Karl: “Improving Data Locality Using Dynamic Page Migration Based on "
             "Memory Access Histograms” (ICCS 2002), with our programs in the paper's sizes: every access recorded in an "
             f"emulator with 4 threads, then <strong>simulated</strong> on <code>{MACHINE}</code>, pages dealt round-robin at "
             "the start. Times are predictions of the model (<code>docs/model.md</code>), counts are exact; of three "
             "recordings each, means and medians. The paper does not "
             f"give the ratio of remote to local latency: it is swept over {', '.join(map(str, ratios))}; where one is shown it is "
             f"{middle}. <code>docs/reproduce-ars.md</code> says what else it leaves open and how it was chosen.</p>",
             tabled("programs", ["program", "size", "shared pages", "accesses to them", "slices", "threshold",
                                 "local at best, pages staying", "moving each slice"],
                    programs_rows(data)),
             "<h2>The paper's findings</h2>", verdicts(found), "<h2>Figure 2: time</h2>",
             figure(f"figure2-{middle}", f"Figure 2. Predicted time over that of the run that is not optimised; remote memory "
                                         f"{middle} times as slow as local."),
             *(figure(f"figure2-{r}", f"The same, {r} times.") for r in ratios if r != middle),
             "<p>Speed-up over round-robin by latency ratio, and local accesses at the ratio in the middle:</p>",
             tabled("speedups", ["program", *map(str, ratios), f"local at {middle}"],
                    times_rows(data, {**ALGORITHMS, "static optimum": STATIC})),
             *(figure(f"sweep-{p}", f"{p}: predicted speed-up by latency ratio.") for p in PROGRAMS),
             "<h2>Table 1: migrations</h2><p>Ours on the left, the paper's on the right.</p>",
             tabled("table1", ["program and policy", *HEADS, "", *(f"paper: {h}" for h in HEADS)], counts_rows(data)),
             "<h2>Where accesses go, slice by slice</h2>",
             *(figure(f"local-{p}", f"{p}: share of accesses that are local in the course of the run ({middle} times).")
               for p in PROGRAMS),
             "<h2>Other policies</h2>",
             figure(f"others-{middle}", f"Policies that are not in the paper, {middle} times."),
             tabled("others", ["program", *map(str, ratios), f"local at {middle}"],
                    times_rows(data, {o: o for o in OTHERS})),
             "<h2>What the paper leaves open</h2>",
             f"<p>One choice at a time, the others as above; remote memory {middle} times as slow. In each cell the speed-up over "
             "round-robin, and in parentheses migrations and how many of them are ping-pongs.</p>",
             held(data), sensitivity(data)]
    return document("Page migration by access histograms, on our programs", parts)
