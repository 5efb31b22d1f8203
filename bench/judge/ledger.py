"""Verdicts of this run against the recorded ones: `python -m judge.ledger SIZE [PAPER] [--check | --begin | --pool]`.

A reproduction leaves its verdicts in build/reproduce/SIZE. Here they replace the recorded ones in bench/verdicts/SIZE, all or those of
one paper, unless a verdict changed of which CHANGELOG says nothing: that is exit status 1, and the recorded one stays. Verdicts of a
tree with changes that are not committed are not recorded at all. `--check` compares and records nothing; `--begin` forgets what the
paper's last run left, so that a row that is missing is seen. Verdicts of rows in bench/verdicts/pooled.csv are over all runs that are
listed there (pooled.py); `--pool` notes the changes that follow from its lines alone and writes the page.

CHANGELOG's part on the version that is not yet released says a change as `D10 (full): holds → does not hold`, or `(nightly)`. Each
such entry is for one change: bench/verdicts/changes.csv has those that were recorded, and the next one like it needs another entry."""

import argparse
import csv
import json
import re

from judge import inputs, page, pooled, verdict
from judge.criteria import CRITERIA

FRESH = verdict.ROOT / "build/reproduce"
MISSING = "not judged"
NAMES = {"full": "full", "fast": "nightly"}
HEADS = ("version", "size", "id", "old", "new", "commit")
# What pages show of a run of full size: build/reproduce/full/images → docs/images.
IMAGES = "images"


def unreleased():
    """The version that is not yet released, and the CHANGELOG's part on it: its first section."""
    text = (verdict.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)[1]
    return re.match(r"[^\s,]*", section)[0], section


def entries(text):
    """Each change that a text says, as `D10 (full): holds → does not hold`: (size, id, old verdict, new verdict)."""
    # Its lines may break anywhere between words.
    words = "|".join(r"\s+".join(word.split()) for word in verdict.WORDS)
    sizes = {name: size for size, name in NAMES.items()}
    found = re.findall(rf"\b([A-Z]\d+)\s+\(({'|'.join(sizes)})\):\s+({words})\s+→\s+({words})\b", text)
    return [(sizes[size], i, " ".join(old.split()), " ".join(new.split())) for i, size, old, new in found]


def unused():
    """Entries of the CHANGELOG that no recorded change used; each would excuse a change."""
    version, text = unreleased()
    said_each, recorded = entries(text), [row[1:-1] for row in changes() if row[0] == version]
    return sorted({row for row in said_each if said_each.count(row) > recorded.count(row)})


def changes():
    """Those that were recorded, as rows of HEADS."""
    file = verdict.RECORDED / "changes.csv"
    if not file.exists():
        return []
    with open(file, encoding="utf-8", newline="") as rows:
        return [tuple(row[head] for head in HEADS) for row in csv.DictReader(rows)]


def said(*change):
    """Whether CHANGELOG has an entry for this change (size, id, old verdict, new verdict) that was not used for an earlier one like it."""
    version, text = unreleased()
    used = sum(row[:-1] == (version, *change) for row in changes())
    return entries(text).count(change) > used


def rows_of(paper=None):
    """All rows, or those of one paper; bench/outside has none."""
    return [i for i, c in CRITERIA.items() if paper is None or c.paper == inputs.PAPERS.get(paper)]


def recorded(size, identifier):
    one = pooled.recorded(size, identifier)
    return one.verdict if one else MISSING


def fresh(size, identifier):
    """This run's verdict, together with the runs that count with it."""
    file = FRESH / size / f"{identifier}.json"
    return pooled.with_recorded(verdict.read(file), size).verdict if file.exists() else MISSING


def changed(size, rows=tuple(CRITERIA)):
    """(id, recorded verdict, verdict now) of each row whose verdict is another one in this run, or is missing there."""
    both = [(i, recorded(size, i), fresh(size, i)) for i in rows]
    return [(i, old, new) for i, old, new in both if old not in (new, MISSING)]


def judged(file):
    """The commit whose run judged it."""
    return json.loads(file.read_text(encoding="utf-8"))["commit"]


def committed(file):
    """Whether a run's file is of a tree without further changes: else it could not be judged again."""
    commit = json.loads(file.read_text(encoding="utf-8")).get("commit", "")
    return bool(commit) and not commit.endswith("+")


def unrepeatable(size, rows=tuple(CRITERIA)):
    """The rows of this run whose tree had changes that no commit has."""
    return [i for i in rows if (FRESH / size / f"{i}.json").exists() and not committed(FRESH / size / f"{i}.json")]


def record(size, kept, rows=tuple(CRITERIA)):
    """Takes over this run's verdicts but for the `kept` ones."""
    folder = verdict.RECORDED / size
    folder.mkdir(parents=True, exist_ok=True)
    taken = [i for i in rows if i not in kept and (FRESH / size / f"{i}.json").exists()]
    note(changed(size, taken), size, FRESH)
    pooled.keep([run for i in taken for run in pooled.taken(verdict.read(FRESH / size / f"{i}.json"), size)])
    for identifier in taken:
        (folder / f"{identifier}.json").write_bytes((FRESH / size / f"{identifier}.json").read_bytes())


def note(new, size, where):
    """Appends changes to those that were recorded: their entries in CHANGELOG are used. `where`: the folder of their verdict files."""
    version, _ = unreleased()
    each = changes() + [(version, size, *row, judged(where / size / f"{row[0]}.json")) for row in new]
    if new:
        with open(verdict.RECORDED / "changes.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADS, *each])


def by_pooling(size):
    """(id, verdict before, verdict over all runs) of each listed row whose last noted verdict, or else its newest run's, is another one."""
    found = []
    for identifier in dict.fromkeys(run.id for run in pooled.read() if run.size == size):
        alone = verdict.read(verdict.RECORDED / size / f"{identifier}.json").verdict
        before = [row[4] for row in changes() if row[1:3] == (size, identifier)] or [alone]
        found.append((identifier, before[-1], recorded(size, identifier)))
    return [row for row in found if row[1] != row[2]]


def record_images():
    for file in (FRESH / "full" / IMAGES).glob("*.svg"):
        (verdict.ROOT / "docs/images" / file.name).write_bytes(file.read_bytes())


def record_outside():
    """The points from outside, which have no size."""
    file = FRESH / "outside.json"
    if file.exists() and committed(file):
        (verdict.RECORDED / "outside.json").write_bytes(file.read_bytes())


def begin(size, paper):
    if paper == "outside":
        (FRESH / "outside.json").unlink(missing_ok=True)
    for identifier in rows_of(paper):
        (FRESH / size / f"{identifier}.json").unlink(missing_ok=True)


def take_over(size, paper, rows, silent):
    """Records this run, all of it or one paper's, and writes the page."""
    if unknown := unrepeatable(size, rows):
        raise SystemExit(f"nothing is recorded: the tree had changes that are not committed when these were judged: {', '.join(unknown)}")
    record(size, {row[0] for row in silent}, rows)
    inputs.record(size, [paper] if paper else inputs.PAPERS)
    if size == "full" and paper in (None, "ars"):
        record_images()
    if paper in (None, "outside"):
        record_outside()
    page.write()


def main():
    parser = argparse.ArgumentParser(prog="python -m judge.ledger")
    parser.add_argument("size", choices=verdict.SIZES)
    parser.add_argument("paper", nargs="?", choices=(*inputs.PAPERS, "outside"))
    parser.add_argument("--check", action="store_true", help="compare, and record nothing")
    parser.add_argument("--begin", action="store_true", help="forget the verdicts of the last run")
    parser.add_argument("--pool", action="store_true", help="note what pooled.csv turns, and write the page")
    asked = parser.parse_args()
    if asked.begin:
        return begin(asked.size, asked.paper)
    rows = rows_of(asked.paper)
    found = by_pooling(asked.size) if asked.pool else changed(asked.size, rows)
    silent = [row for row in found if not said(asked.size, *row)]
    if asked.pool:
        note([row for row in found if row not in silent], asked.size, verdict.RECORDED)
        page.write()
    elif not asked.check:
        take_over(asked.size, asked.paper, rows, silent)
    for identifier, old, new in silent:
        print(f"{identifier}: {old} as recorded, {new} now; CHANGELOG does not say `{identifier} ({NAMES[asked.size]}): {old} → {new}`")
    if not asked.check:
        print(page.summary_line(asked.size))
    raise SystemExit(1 if silent else 0)


if __name__ == "__main__":
    main()
