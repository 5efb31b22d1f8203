"""The page of this reproduction."""

from web import document, figure, table, verdicts


def balance_table(data):
    programs = data["programs"]
    rows = []
    for policy in ("first-touch", "locality", "interleave", "balanced", "mixed"):
        for label, key in (("pages", "page_balance"), ("accesses", "access_balance")):
            values = [p[key][policy] for p in programs.values()]
            shown = [f"{100 * v:.0f}" for v in (*values, sum(values) / len(values))]
            rows.append([f"{policy}, {label}", *shown])
    return table(["% of even", *programs, "average"], rows)


def write(data, found):
    parts = [
        "<p>The figures and tables of Diener, Cruz, Navaux (PDP 2015), made by <code>nodewise record</code>, "
        "<code>report --json</code> and <code>simulate --json</code>. 64 threads; a program's name with + means that all "
        "threads initialise its arrays, without that the master does. Times are predictions of the model "
        "(<code>docs/model.md</code>), not measurements.</p>",
        "<h2>The paper's findings</h2>", verdicts(found),
        "<h2>Behaviour</h2>",
        figure("figure1", "Figure 1. Application exclusivity on 4 and on 64 nodes, with 4 KiB and 2 MiB pages."),
        "<h3>Table I. Page and access balance</h3>", balance_table(data),
        figure("figure2", "Figure 2. Page and access balance under first-touch."),
        figure("figure3", "Figure 3. Access balance under locality, interleave and mixed."),
        figure("figure4", "Figure 4. Pages by how often they would move to stay with the node that uses them most."),
        "<h2>Predicted improvement over first-touch</h2>",
    ]
    for number, machine in enumerate(data["machines"], 5):
        parts.append(figure(f"figure{number}", f"Figure {number}. {machine}; lines span the model's uncertainty."))
    return document("Locality vs. balance, on our workloads", parts)
