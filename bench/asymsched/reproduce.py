"""Runs every part, joins their Markdown, checks findings: see bench/reproduce-asymsched.

A part is a module with `part() -> (markdown, [Check])`; PARTS has them in the order of the page."""

import argparse
import shutil
import sys

import drawings
import placements
import recordings
import several
import single
import statements
import table1
import table3
from checks import table
from nodewise import ROOT

PARTS = [table1, statements, table3, placements, single, several, drawings]
HEAD = """# Reproducing AsymSched

`make reproduce-asymsched` computes what our models reproduce of Lepers, Quéma, Fedorova: "Thread and Memory
Placement on NUMA Systems: Asymmetry Matters" (USENIX ATC 2015), writes this page (`--update` puts it here), and
exits with status 1 when a finding changes. Figures 2 to 7 record our programs first, some minutes long; `bench/reproduce-asymsched
--reuse` keeps recordings. [Asymmetry](asymmetry.md) explains what it is about, with drawings.

Everything is computed on [`machine-a`](machines.md), a model of their machine: link classes, one-way links and the
sixteen bandwidths are theirs; which pairs of nodes some of them belong to, the remaining links and what links carry
together are not in the paper and are assumed.
"""


def page(parts):
    checks = [check for _, found in parts for check in found]
    rows = [("holds" if c.holds else "**does not**", c.claim, c.paper, c.ours, c.why) for c in checks]
    same = sum(c.holds for c in checks)
    body = "\n".join(markdown for markdown, _ in parts if markdown)
    findings = table(["", "finding", "paper", "here", "where it differs, and why"], rows, left=5)
    return f"{HEAD}\n{body}\n## All findings\n\nOf {len(checks)} checks {same} hold.\n\n{findings}"


def main():
    parser = argparse.ArgumentParser(prog="bench/reproduce-asymsched")
    parser.add_argument("--update", action="store_true", help="renew docs/reproduce-asymsched.md, docs/asymmetry.md and its drawings")
    parser.add_argument("--reuse", action="store_true", help="keep recordings that are there")
    asked = parser.parse_args()
    recordings.keep = asked.reuse
    if asked.update:
        drawings.update()
    parts = [module.part() for module in PARTS]
    text = page(parts)
    target = ROOT / ("docs" if asked.update else "build/asymsched") / "reproduce-asymsched.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    if asked.update:
        for picture in sorted((recordings.FOLDER / "images").glob("*.svg")):
            shutil.copy(picture, ROOT / "docs/images")
    print(f"reproduce-asymsched: wrote {target.relative_to(ROOT)}", file=sys.stderr)
    checks = [check for _, found in parts for check in found]
    for check in checks:
        check.print()
    changed = [check.claim for check in checks if not check.as_expected]
    if changed:
        sys.exit("reproduce-asymsched: no longer as the page says: " + "; ".join(changed))


if __name__ == "__main__":
    main()
