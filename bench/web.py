"""One page with everything a reproduction found, in plain HTML; figures are files beside it."""

import csv
import html

from judge import CRITERIA, page
from judge.verdict import told

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
    """A row a verdict, with criterion, figures, ranges and reason."""
    rows = []
    for one in found:
        why = " ".join(filter(None, (one.part and f"Judged in part: {one.part}", one.reason)))
        cells = (CRITERIA[one.id].claim, CRITERIA[one.id].holds, told(one), page.ranges(one), one.differs, why)
        rows.append(f'<tr><td>{one.id}</td><td class="{"yes" if one.verdict == "holds" else "no"}">{escape(one.verdict)}</td>'
                    + "".join(f'<td class="text">{escape(c)}</td>' for c in cells) + "</tr>")
    heads = "".join(f"<th>{h}</th>" for h in ("", "", "the paper's finding", "holds if", "here", "range", "differs", "reason"))
    return f'<table class="findings"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def document(title, parts):
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
            f"<style>{STYLE}</style><body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>\n")


def write_csv(file, heads, rows):
    with open(file, "w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([heads, *rows])
