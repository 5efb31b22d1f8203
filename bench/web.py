"""One page with everything a reproduction found, in plain HTML; figures are files beside it."""

import csv
import html
import json
import sys
from dataclasses import asdict, dataclass

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
img{width:100%}table{border-collapse:collapse;margin:1rem 0;font-size:13px}
td,th{padding:.2rem .5rem;border-bottom:1px solid #ddd;text-align:right}td:first-child,th:first-child{text-align:left}
td.text,.findings th{text-align:left}.yes{color:#187a36}.no{color:#b3261e}figure{margin:2rem 0}figcaption{color:#555}"""


@dataclass
class Finding:
    """What a paper found, as a check on our programs. One that does not hold says where and why."""

    claim: str
    paper: str
    ours: str
    holds: bool
    why: str = ""

    def print(self):
        print(f"{'holds   ' if self.holds else 'does not'}  {self.claim}: {self.ours} (paper: {self.paper})")
        if self.why:
            print(f"          {self.why}")


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
        mark = '<td class="yes">holds</td>' if f.holds else '<td class="no">does not</td>'
        cells = "".join(f'<td class="text">{escape(c)}</td>' for c in (f.claim, f.paper, f.ours, f.why))
        rows.append(f"<tr>{mark}{cells}</tr>")
    heads = "".join(f"<th>{h}</th>" for h in ("", "finding", "paper", "here", "where it differs, and why"))
    return f'<table class="findings"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def document(title, parts):
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
            f"<style>{STYLE}</style><body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>\n")


def publish(folder, data, found, page):
    """Leaves figures and the page in the folder, and prints what holds."""
    (folder / "data.json").write_text(json.dumps({**data, "findings": [asdict(f) for f in found]}, indent=1) + "\n")
    (folder / "index.html").write_text(page)
    for f in found:
        f.print()
    print(f"wrote {folder / 'index.html'}", file=sys.stderr)


def write_csv(file, heads, rows):
    with open(file, "w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([heads, *rows])
