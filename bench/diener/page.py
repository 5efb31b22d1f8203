"""One page with everything, in plain HTML; figures are files beside it."""

import html

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
img{width:100%}table{border-collapse:collapse;margin:1rem 0;font-size:13px}
td,th{padding:.2rem .5rem;border-bottom:1px solid #ddd;text-align:right}td:first-child,th:first-child{text-align:left}
td.text,.findings th{text-align:left}.yes{color:#187a36}.no{color:#b3261e}figure{margin:2rem 0}figcaption{color:#555}"""


def escape(value):
    return html.escape(str(value))


def table(heads, rows):
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def figure(name, caption):
    return f'<figure><img src="{name}.svg" alt="{escape(caption)}"><figcaption>{escape(caption)}</figcaption></figure>'


def verdicts(found):
    rows = []
    for f in found:
        mark = '<td class="yes">holds</td>' if f["holds"] else '<td class="no">does not</td>'
        cells = "".join(f'<td class="text">{escape(f[k])}</td>' for k in ("claim", "paper", "ours", "why"))
        rows.append(f"<tr>{mark}{cells}</tr>")
    heads = "".join(f"<th>{h}</th>" for h in ("", "finding", "paper", "here", "where it differs, and why"))
    return f'<table class="findings"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


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
        "<h1>Locality vs. balance, on our workloads</h1>",
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
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Locality vs. balance</title>'
            f"<style>{STYLE}</style><body>{''.join(parts)}</body></html>")
