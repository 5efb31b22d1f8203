"""The page of this reproduction."""

from statistics import fmean

from checks import GAINS, TABLE_I
from programs import PROGRAMS, STATIC
from study import MACHINES, POLICIES

from web import document, figure, table, verdicts


def percent(value):
    return f"{100 * value:.0f}"


def balance_table(data):
    rows = []
    for policy in (p for p in POLICIES if p != "random"):
        for metric in ("pages", "accesses"):
            values = [data[n]["balance"][policy][metric] for n in STATIC]
            rows.append([f"{policy}, {metric}", *map(percent, values), percent(fmean(values)), TABLE_I[metric][policy]])
    printed = [data[n]["as_printed"] for n in STATIC]
    rows.append(["every policy, accesses with equation 4 as printed", *map(percent, printed), percent(fmean(printed)), ""])
    return table(["% of even", *STATIC, "mean", "the paper's"], rows)


def gains_table(data):
    rows = []
    for machine in MACHINES:
        for policy, paper in GAINS[machine.title].items():
            values = [data[n]["scenarios"][machine.title][policy]["typical"] - 1 for n in STATIC]
            rows.append([f"{machine.title}, {policy}", *map(percent, values), percent(fmean(values)), paper])
    return table(["gain over first-touch, %", *STATIC, "mean", "the paper's"], rows)


def program_table(size, data):
    rows = [[name, one.original, "all threads" if one.parallel else "one thread", one.settings[size].size,
             one.settings[size].iterations, one.iteration, f"{4 * data[name]['pages'] / 1024:,.0f}", f"{data[name]['slices']:.0f}",
             f"{data[name]['slices_an_iteration']:.2f}", one.smaller] for name, one in PROGRAMS.items()]
    return table(["program", "original", "initialised by", "size", "outer iterations", "one is a", "MiB touched", "slices",
                  "slices an iteration", "smaller than by the rule"], rows)


INPUTS = [["NUMA factor of Itanium, Xeon, Opteron (V.A): what the machine files are built from", "2.1, 1.5, 2.8"],
          ["page size (Table II)", "16, 4, 4 KiB"], ["threads (V.A)", "8, 64, 64"],
          ["threshold of mixed (III.A, V.B)", "99, 90, 90 %"],
          ["no exclusivity rises with larger pages or more nodes", "by its definition (docs/metrics/exclusivity.md)"]]


def write(size, data, found):
    parts = [
        "<p>The rows, figures and tables of Diener, Cruz, Navaux (PDP 2015) by <code>nodewise record</code>, "
        f"<code>report --json</code> and <code>simulate --json</code>; size: {size}. 64 threads, medians of five recordings. "
        "Times are predictions of the model (<code>docs/model.md</code>), not measurements.</p>",
        "<h2>The paper's findings</h2>", verdicts(found),
        "<h2>Programs</h2>", program_table(size, data),
        "<h2>Behaviour</h2>",
        figure("figure1", "Figure 1. Application exclusivity on 4 and on 64 nodes, with 4 KiB and 2 MiB pages."),
        "<h3>Table I. Page and access balance</h3>", balance_table(data),
        figure("figure2", "Figure 2. Page and access balance under first-touch."),
        figure("figure3", "Figure 3. Access balance under locality, interleave and mixed."),
        figure("figure4", "Figure 4. Pages by how often they would move to stay with the node that uses them most."),
        "<h2>Predicted improvement over first-touch</h2>", gains_table(data),
    ]
    for number, machine in enumerate(MACHINES, 5):
        parts.append(figure(f"figure{number}", f"Figure {number}. {machine.title}; lines span the model's uncertainty."))
    parts += ["<h2>Inputs</h2><p>Read from the paper or true by definition; not judged.</p>", table(["", ""], INPUTS)]
    return document("Locality vs. balance, on our workloads", parts)
