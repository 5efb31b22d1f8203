"""What was read from a paper and read back: kept apart from the verdicts, as rule 4 has it.

Each reproduction writes its rows, `(what, what was found, whether it is so)`, beside its verdicts."""

import json

from judge import verdict

PAPERS = {"diener": "Diener et al.", "majo": "Majo and Gross", "mai": "MAI", "ars": "ARS", "asymsched": "AsymSched"}
FOLDER = "inputs"


def fresh(size):
    return verdict.ROOT / "build/reproduce" / size / FOLDER


def write(paper, size, rows):
    """Of one reproduction's run. What is given and compared with nothing has no third part."""
    assert paper in PAPERS, paper
    folder = fresh(size)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps([[what, str(found), *map(in_words, so)] for what, found, *so in rows], indent=1, ensure_ascii=False)
    (folder / f"{paper}.json").write_text(text + "\n", encoding="utf-8")


def in_words(so):
    return "yes" if so else "NO"


def record(size, papers=tuple(PAPERS)):
    """Takes over this run's, which no criterion judges."""
    folder = verdict.RECORDED / size / FOLDER
    for file in (fresh(size) / f"{paper}.json" for paper in papers):
        if file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / file.name).write_bytes(file.read_bytes())


def read():
    """By paper the rows of the largest recorded size."""
    found = {}
    for paper, title in PAPERS.items():
        files = [verdict.RECORDED / size / FOLDER / f"{paper}.json" for size in verdict.SIZES]
        there = [file for file in files if file.exists()]
        if there:
            found[title] = [[*row, "given"][:3] for row in json.loads(there[0].read_text(encoding="utf-8"))]
    return found
