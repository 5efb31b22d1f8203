"""Verdicts of this run against the recorded ones: `python -m judge.ledger SIZE` after the reproductions have run.

A reproduction leaves its verdicts in build/reproduce/SIZE. Here they replace the recorded ones in bench/verdicts/SIZE, unless a
verdict changed of which CHANGELOG says nothing: that is exit status 1, and the recorded one stays. Verdicts of a tree with changes that
are not committed are not recorded at all."""

import json
import re
import sys

from judge import inputs, page, verdict
from judge.criteria import CRITERIA

FRESH = verdict.ROOT / "build/reproduce"
MISSING = "not judged"


def unreleased():
    """The CHANGELOG's part on what is not yet released: its first section."""
    text = (verdict.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.split(r"^## ", text, flags=re.MULTILINE)[1]


def mentioned(identifier, old, new, text):
    """Whether a text says this change: `D10: holds → does not hold`."""
    return re.search(rf"\b{identifier}: {re.escape(old)} → {re.escape(new)}\b", text) is not None


def changed(size):
    """(id, recorded verdict, verdict now) of each row whose verdict is another one in this run, or is missing there."""
    def of(file):
        return json.loads(file.read_text(encoding="utf-8"))["verdict"] if file.exists() else MISSING
    both = [(i, of(verdict.RECORDED / size / f"{i}.json"), of(FRESH / size / f"{i}.json")) for i in CRITERIA]
    return [(i, old, new) for i, old, new in both if old not in (new, MISSING)]


def unrepeatable(size):
    """The rows of this run whose tree had changes that no commit has: they could not be judged again."""
    each = {file.stem: json.loads(file.read_text(encoding="utf-8"))["commit"] for file in sorted((FRESH / size).glob("*.json"))}
    return [identifier for identifier, commit in each.items() if not commit or commit.endswith("+")]


def record(size, kept):
    """Takes over this run's verdicts but for the `kept` ones."""
    folder = verdict.RECORDED / size
    folder.mkdir(parents=True, exist_ok=True)
    for file in (FRESH / size).glob("*.json"):
        if file.stem not in kept:
            (folder / file.name).write_bytes(file.read_bytes())


def main():
    size = sys.argv[1] if len(sys.argv) > 1 else "full"
    text = unreleased()
    silent = [row for row in changed(size) if not mentioned(*row, text)]
    if unknown := unrepeatable(size):
        raise SystemExit(f"nothing is recorded: the tree had changes that are not committed when these were judged: {', '.join(unknown)}")
    record(size, {row[0] for row in silent})
    inputs.record(size)
    if (FRESH / "outside.json").exists():
        (verdict.RECORDED / "outside.json").write_bytes((FRESH / "outside.json").read_bytes())
    page.write()
    for identifier, old, new in silent:
        print(f"{identifier}: {old} as recorded, {new} now; CHANGELOG does not say `{identifier}: {old} → {new}`")
    print(page.summary_line(size))
    raise SystemExit(1 if silent else 0)


if __name__ == "__main__":
    main()
