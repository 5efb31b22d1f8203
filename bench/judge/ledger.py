"""Verdicts of this run against the recorded ones: `python -m judge.ledger SIZE` after the reproductions have run.

A reproduction leaves its verdicts in build/reproduce/SIZE. Here they replace the recorded ones in bench/verdicts/SIZE, unless a
verdict changed of which CHANGELOG says nothing: that is exit status 1, and the recorded one stays."""

import json
import re
import sys

from judge import page, verdict
from judge.criteria import CRITERIA

FRESH = verdict.ROOT / "build/reproduce"


def unreleased():
    """The CHANGELOG's part on what is not yet released: its first section."""
    text = (verdict.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.split(r"^## ", text, flags=re.MULTILINE)[1]


def mentioned(identifier, text):
    return re.search(rf"\b{identifier}\b", text) is not None


def changed(size):
    """(id, recorded verdict, verdict now) of each row of this run whose verdict is another one."""
    found = []
    for file in sorted((FRESH / size).glob("*.json")):
        recorded = verdict.RECORDED / size / file.name
        if file.stem in CRITERIA and recorded.exists():
            old, new = (json.loads(f.read_text(encoding="utf-8"))["verdict"] for f in (recorded, file))
            if old != new:
                found.append((file.stem, old, new))
    return found


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
    silent = [row for row in changed(size) if not mentioned(row[0], text)]
    record(size, {row[0] for row in silent})
    if (FRESH / "outside.json").exists():
        (verdict.RECORDED / "outside.json").write_bytes((FRESH / "outside.json").read_bytes())
    page.write()
    for identifier, old, new in silent:
        print(f"{identifier}: {old} as recorded, {new} now; CHANGELOG says nothing about {identifier}")
    print(page.summary_line(size))
    raise SystemExit(1 if silent else 0)


if __name__ == "__main__":
    main()
