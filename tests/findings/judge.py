"""The judge of findings: what each word of a verdict takes, that each row has what must fail, and that the page and README have the
verdict files' figures."""

import contextlib
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import replace

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

import checked  # noqa: E402
import readme  # noqa: E402
import reuse  # noqa: E402
import tables  # noqa: E402
from judge import CRITERIA, Check, cores, inputs, judge, ledger, page, pooled, untested, verdict  # noqa: E402
from judge.check import IN_PART, Range, Test  # noqa: E402
from judge.verdict import DEAD, RIVAL  # noqa: E402

check = checked.Checks(quiet=True)


def data(*gains):
    return [{"gain": gain} for gain in gains]


def row(**what):
    """A policy that has to be faster by more than 2 %."""
    slow = {"one that is slow": lambda _: {"gain": 1.0}}
    return Check("D10", lambda d: {"gain": d["gain"]}, lambda f: f["gain"] > 1.02,
                 **{"dead": slow, "rivals": slow, "closed": "this is a test", **what})


def made(repeats, check=None, **options):
    """The verdict on it."""
    return judge(check or row(), repeats, size="fast", basis="simulation", **options)


def words():
    check(made(data(1.1, 1.2, 1.1, 1.3, 1.1)).verdict == verdict.HOLDS, "five of five hold")
    check(made(data(1.1, 1.2, 1.0, 1.3, 1.1)).verdict == verdict.HOLDS, "four of five hold")
    three = made(data(1.1, 1.0, 1.0, 1.3, 1.1))
    check((three.verdict, three.held) == (verdict.FLIPS, 3), "three of five are undecided")
    check(made(data(1.1, 1.0, 1.0, 1.0, 1.1)).verdict == verdict.FAILS, "a median that fails does not hold")
    check(made(data(1.02, 1.02, 1.02, 1.02, 1.02)).verdict == verdict.FAILS, "a tie is no win")
    passing = {"one that is as fast": lambda d: d}
    for kind in ("dead", "rivals", "inputs"):
        unable = made(data(1.1, 1.1, 1.1), row(**{kind: passing})).verdict
        check(unable == verdict.UNABLE, f"a check that its stand-in passes cannot fail: {kind}")
    reasons = [made(data(gain), reason="why").reason for gain in (1.0, 1.1)]
    check(reasons == ["Not known. why", ""], "what was looked at is of a row that does not hold")
    check(made(data(1.0)).reason == "Not known.", "one without is not known")
    assumed = [Range("window", "2 to 8", {"2": data(1.1), "8": data(1.0)})]
    check(made(data(1.0), ranges=assumed).reason == "Not known. By the ranges it holds at window 2.", "and where it would hold is said")
    known = made(data(1.0), tests=[Test("without the cause", data(1.1, 1.1, 1.1, 1.1, 1.1))])
    said = "Tested without the cause (5 recordings): gain: 1.10. The row holds then."
    check(known.reason == said, "a reason is known where the row holds without it, in five recordings")
    other = made(data(1.0), tests=[Test("with another program", data(1.1, 1.1, 1.1, 1.1, 1.1), instead=True)])
    check(other.reason.startswith("Not known. Tested with another program"), "but not where something else is judged in its place")
    but = "The row holds then, but this judges something else than the row does, and so is no reason."
    check(other.reason.endswith(but), "and says so")
    fast = data(1.1, 1.1, 1.1, 1.1, 1.1)
    for what in ({"ranges": [Range("core", "x", {"fast": fast})], "tests": [Test("with a fast core", fast)]},
                 {"tests": [Test("with a fast core", fast, open=True)]}):
        within = made(data(1.0), **what).reason
        check(within.startswith("Not known. ") and "may be so without taking anything away, and so is no reason." in within,
              "nor by a value that may be true without taking anything away")
    never = made(data(1.0), row(cannot_hold="Both are the same here."), reason="why").reason
    check(never == "Both are the same here. why", "a row that fails by definition says so")
    few = made(data(1.0), tests=[Test("without the cause", data(1.1))]).reason
    check(few.startswith("Not known: ") and "(one recording)" in few, "of one recording a reason is not known")
    still = made(data(1.0), tests=[Test("without that", data(1.01))]).reason
    check(still == "Not known. Tested without that (one recording): gain: 1.01. The row does not hold then.", "and not where it does not")
    check(not made(data(1.1), tests=[Test("without the cause", data(1.1))]).tests, "nothing is tested of a row that holds")
    wins = row(rivals={"one that wins": lambda _: {"gain": 2.0}})
    check(made(data(1.0), wins).verdict == verdict.FAILS, "one that fails is able to")
    figure = three.figures["gain"]
    check([one["gain"] for one in made(data(1.1, 1.2, 1.0)).each] == [1.1, 1.2, 1.0], "the figures of each repeat are kept")
    check((figure.median, figure.least, figure.most) == (1.1, 1.0, 1.3), "median, least and most are the repeats'")
    over = made(data(1.1), ranges=[Range("misses in flight", "2 to 12", {"2": data(1.1), "12": data(1.0)})])
    check(over.ranges[0].held == {"2": True, "12": False} and over.ranges[0].share == 0.5, "a range's share is of its values")
    each = [Range("misses in flight", "2 to 12", {"2": data(1.1, 1.1, 1.1, 1.0, 1.0), "12": data(1.1, 1.1, 1.1, 1.1, 1.0)})]
    over = made(data(1.1), ranges=each)
    check(over.ranges[0].held == {"2": False, "12": True}, "a value of a range holds as a verdict does: the median and four of five")
    check(over.ranges[0].repeats == 5, "and says of how many recordings it is")
    part = [made(data(gain), row(part="half of it")) for gain in (1.1, 1.0)]
    check([one.verdict for one in part] == [verdict.FLIPS, verdict.FAILS], "a row of which a part is judged can fail, not hold")
    check(part[0].reason == IN_PART, "and says that the part holds")


def figures():
    """As pages show them."""
    def two(d):
        return {"over 4 threads": d["gain"], "cases": 5}
    one = made(data(1.1, 1.2, 1.1), Check("D10", two, lambda _: True, dead={"x": lambda d: d}, rivals={"y": lambda d: d}, closed="a test",
                                          unit=" %", units={"cases": ""}))
    check(verdict.told(one) == "over 4 threads: 1.10 % [1.10–1.20]; cases: 5", "names are set off from values, each with its own unit")
    said = made(data(1.0), row(words=lambda f: f"{verdict.spread(f['gain'])} times as fast"), tests=[Test("without", data(1.1))])
    check(verdict.told(said) == "1 times as fast", "a row may say its figures in words")
    check("(one recording): 1.10 times as fast. The row" in said.reason, "and so do its tests")


def ranged():
    """The table of ranges."""
    def over(identifier, name, at_2, at_8):
        one = made(data(1.1), ranges=[Range(name, "2 to 8", {"2": data(at_2), "8": data(at_8)})])
        return {identifier: replace(one, id=identifier)}
    rows = over("A1", "window", 1.1, 1.0) | over("A2", "window", 1.0, 1.0) | over("A3", "window", 1.1, 1.0) | over("A4", "rest", 1.1, 1.1)
    rows["A6"] = replace(made(data(1.1), ranges=[Range("rest", "2 to 8", {"4": data(1.0)})]), id="A6")
    lines = page.ranges_table(rows | {"A5": made(data(1.1))}).splitlines()[2:]
    check(lines == ["| window | 2 to 8 | 2, 8 | A1, A3: 2; A2: nowhere | 1 |",
                    "| rest | 2 to 8 | by row, in brackets | [2, 8] A4: everywhere; [4] A6: nowhere | 1 |",
                    "| nothing | this is a test | – | A5 | – |"], "a quantity stands once, with the rows that have it")


def refused(**what):
    try:
        return not row(**what)
    except ValueError:
        return True


def stand_ins():
    check(refused(dead={}) and refused(rivals={}), "a row without a dead policy or a rival is refused")
    check(not refused(dead={}, lacks={DEAD: "nothing moves here"}), "unless it says why there can be none")
    check(refused(dead={}, lacks={RIVAL: "there is one"}), "of the kind that is missing")
    found = made(data(1.1), row(inputs={"one without": lambda _: {"gain": 1.0}})).stand_ins
    check([one.kind for one in found] == list(verdict.KINDS), "a verdict says of which kind a stand-in is")
    fast = {"one that is fast": lambda _: {"gain": 1.5}}
    check(made(data(1.1), row(rivals=fast)).verdict == verdict.UNABLE, "a row that its rival passes cannot fail")
    other = made(data(1.1), row(others=fast))
    check(other.verdict == verdict.HOLDS and other.stand_ins[-1].passes, "another policy that passes is shown, and turns nothing")


# Modules of each reproduction that have its rows; what they only need to run stands empty in the test's process.
ROWS = {"diener": ["checks"], "majo": ["checks"], "mai": ["checks"], "ars": ["findings"],
        "asymsched": ["table1", "single", "several", "overhead", "placements"]}
LIST_ROWS = """
import importlib, json, sys, types
for name in ("duckdb", "numpy"):
    sys.modules[name] = types.ModuleType(name)
from judge import Check
from judge.verdict import KINDS
found = {}
for module in sys.argv[1:]:
    for value in vars(importlib.import_module(module)).values():
        each = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
        found |= {one.id: {kind: list(one.stand_ins(kind)) or one.lacks.get(kind, "") for kind in KINDS} for one in each
                  if isinstance(one, Check)}
print(json.dumps(found))
"""


def rows_of(paper):
    """By row and kind the names of what stands in, or why there is none."""
    path = os.pathsep.join(str(ROOT / "bench" / folder) for folder in (paper, ""))
    done = subprocess.run([sys.executable, "-B", "-c", LIST_ROWS, *ROWS[paper]], env={**os.environ, "PYTHONPATH": path}, check=False,
                          capture_output=True, text=True)
    check(done.returncode == 0, f"the rows of {paper} can be read", done.stderr)
    return json.loads(done.stdout or "{}")


def rows():
    found = {identifier: kinds for paper in ROWS for identifier, kinds in rows_of(paper).items()}
    check({*found} == {*CRITERIA} - {"S11"}, "each criterion has a row, but for the one that needs a machine of several nodes")
    for kind in (DEAD, RIVAL):
        without = [identifier for identifier, kinds in found.items() if not kinds[kind]]
        check(not without, f"each row has a {kind} that must fail, or says why not: not {', '.join(without)}")


def clocks():
    """Of a process of its own, as the clock is read once."""
    asks = "from judge import cores; print(cores.host_ghz())"
    path = {**os.environ, "PYTHONPATH": str(ROOT / "bench")}
    told = subprocess.run([sys.executable, "-B", "-c", asks], env={**path, cores.GIVEN: "1.25"}, check=True, capture_output=True, text=True)
    check(told.stdout == "1.25\n", "the clock of a run is given to all its parts")
    check(made(data(1.1)).host_ghz == cores.host_ghz() > 0, "a verdict says the clock that its core factors are of")


def tabled():
    found = tables.markdown(["a", "b", "c"], [["x|y", "two\nlines", 3]], 1)
    check(found == "| a | b | c |\n| :-- | ---: | ---: |\n| x\\|y | two lines | 3 |\n", "a table in Markdown keeps its cells")


def criteria():
    check(len(CRITERIA) == 54, "there are 54 criteria")
    shared = ROOT.parent / "shared/findings/findings.csv"
    if shared.exists():
        check(shared.read_bytes() == (ROOT / "bench/judge/criteria.csv").read_bytes(), "the criteria are those that were given")


def files():
    with tempfile.TemporaryDirectory() as folder:
        tests = [Test("without the cause", data(1.1))]
        for one in (made(data(1.1, 1.2), ranges=[Range("r", "s", {"1": data(1.1)})]), made(data(1.0), tests=tests),
                    untested("S11", "one node", size="fast")):
            one.write(pathlib.Path(folder))
            check(verdict.read(pathlib.Path(folder) / f"{one.id}.json") == one, f"{one.id} is read as written")


def status_of(*words):
    """The exit status of `python -m judge.ledger`, by the folders that it has now."""
    sys.argv[1:] = words
    try:
        with contextlib.redirect_stdout(None):
            ledger.main()
    except SystemExit as end:
        return end.code


def changes():
    """The ledger, on a tree of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        verdict.RECORDED, ledger.FRESH, verdict.ROOT = root / "recorded", root / "fresh", root
        (root / "CHANGELOG.md").write_text("# Changelog\n\n## next\n\nnothing about it\n\n## 0.1\n\nD10 holds\n")
        made(data(1.1)).write(root / "recorded/fast")
        made(data(1.0)).write(root / "fresh/fast")
        found = ledger.changed("fast")
        trees = [("", False), ("0123456789ab+", False), ("0123456789ab", True)]
        for commit, repeatable in trees:
            replace(made(data(1.0)), commit=commit).write(root / "fresh/fast")
            check((ledger.unrepeatable("fast") == []) == repeatable, f"whether a verdict of tree '{commit}' can be judged again")
        check(found == [("D10", verdict.HOLDS, verdict.FAILS)], "a verdict that changed is seen")
        check(ledger.changed("fast", ledger.rows_of("diener")) == found, "by the paper's part, too")
        check(not ledger.changed("fast", ledger.rows_of("ars")), "and not by another one's")
        check(not ledger.said("fast", *found[0]), "what an older version said does not count")
        ledger.record("fast", {"D10"})
        check(verdict.read(root / "recorded/fast/D10.json").verdict == verdict.HOLDS, "the recorded one stays")
        ledger.record("fast", set())
        check(verdict.read(root / "recorded/fast/D10.json").verdict == verdict.FAILS, "one that is said is taken over")
        made(data(1.1)).write(root / "fresh/fast")
        ledger.record("fast", set())
        check([row[1:5] for row in ledger.changes()] == [("fast", "D10", verdict.HOLDS, verdict.FAILS),
                                                         ("fast", "D10", verdict.FAILS, verdict.HOLDS)], "what was recorded is noted")
        made(data(1.0)).write(root / "fresh/fast")
        entry = f"D10 (nightly): {verdict.HOLDS} → {verdict.FAILS}"
        check(status_of("fast", "diener", "--check") == 1, "a change that CHANGELOG does not say ends with status 1")
        for said, excused in ((entry, False), (f"{entry}; again {entry}", True)):
            (root / "CHANGELOG.md").write_text(f"# Changelog\n\n## next, not yet released\n\n{said}\n\n## 0.1\n\n{entry}\n")
            check(ledger.said("fast", "D10", verdict.HOLDS, verdict.FAILS) == excused, "an entry is for one change")
        check(status_of("fast", "diener", "--check") == 0, "one that it says, with 0")
        check(ledger.unused() == [("fast", "D10", verdict.HOLDS, verdict.FAILS)], "an entry that no change used is seen")
        ledger.record("fast", set())
        check(not ledger.unused(), "until one uses it")
        ledger.begin("fast", "ars")
        check((root / "fresh/fast/D10.json").exists(), "a part forgets its own rows alone")
        (root / "fresh/fast/D10.json").unlink()
        check(ledger.changed("fast") == [("D10", verdict.FAILS, ledger.MISSING)], "one that is missing is seen")
        inputs.write("ars", "fast", [["given", 4], ["read back", 2, True], ["not so", 3, False]])
        inputs.record("fast")
        found = [["given", "4", "given"], ["read back", "2", "yes"], ["not so", "3", "NO"]]
        check(inputs.read() == {"ARS": found}, "inputs are kept apart, and say what is not as it should be")
        asked = [("fast", "D10", verdict.HOLDS, verdict.FAILS), ("full", "D10", verdict.HOLDS, verdict.FAILS),
                 ("fast", "D10", verdict.HOLDS, verdict.FLIPS), ("fast", "D1", verdict.HOLDS, verdict.FAILS)]
        check([ledger.entries(entry).count(one) for one in asked] == [1, 0, 0, 0], "a change is said as it is, with its size")
        check(ledger.entries(entry.replace(": ", ":\n  ", 1).replace(" →", "\n  →")).count(asked[0]) == 1, "wherever its lines break")
        for commit, taken in (("0123456789ab+", False), ("0123456789ab", True)):
            (root / "fresh/outside.json").write_text(json.dumps({"commit": commit}))
            ledger.record_outside()
            check((root / "recorded/outside.json").exists() == taken, f"whether points from outside of tree '{commit}' are recorded")


def pooling():
    """Rows of several runs, on a tree of their own; after `changes`, which points the judge elsewhere."""
    def run(held, repeats=5):
        return pooled.Run("D10", "fast", held, repeats, "0123456789ab", "this is a test")

    verdict.ROOT = ROOT
    four, three, none = made(data(1.1, 1.1, 1.1, 1.1, 1.0)), made(data(1.1, 1.1, 1.1, 1.0, 1.0)), made(data(1.0, 1.0, 1.0, 1.0, 1.1))
    check(pooled.of(four, []) == four, "a row of one run stays as it is")
    over = pooled.of(four, [run(3)])
    check((over.verdict, over.held, over.repeats, over.runs) == (verdict.FLIPS, 7, 10, 2), "three and four of five are undecided together")
    said = "Held in 7 of 10 recordings of two runs between which nothing changed that it depends on (3 of 5, 4 of 5)."
    check(over.reason.startswith(said) and over.reason.endswith("Not known."), "and the row says so")
    check(pooled.of(three, [run(5)]).verdict == verdict.HOLDS, "five and three of five hold")
    check(pooled.of(none, [run(5), run(4)]).verdict == verdict.FLIPS, "a run whose median fails beside two that hold is undecided")
    check(pooled.of(none, [run(3)]).verdict == verdict.FAILS, "where most recordings fail, too, it does not hold")
    part = made(data(1.1, 1.1, 1.1, 1.1, 1.1), row(part="half of it"))
    check(pooled.of(part, [run(5)]).verdict == verdict.FLIPS, "a row of which a part is judged stays undecided")
    passing = made(data(1.1, 1.1, 1.1, 1.1, 1.1), row(rivals={"one that is as fast": lambda d: d}))
    check(pooled.of(passing, [run(1)]).verdict == verdict.UNABLE, "one that cannot fail stays so")
    check(pooled.of(untested("D10", "one node", size="fast"), [run(3)]).verdict == verdict.UNTESTED, "and one that was not tested")
    assumed = [Range("window", "2 to 8", {"2": data(1.1, 1.1, 1.1, 1.1, 1.0), "8": data(1.0)})]
    over = pooled.of(made(data(1.1, 1.1, 1.1, 1.1, 1.0), ranges=assumed), [run(3)])
    check(page.ranges(over).startswith("50 %"), "its range is the newest run's")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        verdict.RECORDED, ledger.FRESH, verdict.ROOT, page.PAGE = root / "recorded", root / "fresh", root, root / "page.md"
        (root / "CHANGELOG.md").write_text("# Changelog\n\n## next\n\nnothing about it\n\n## 0.1\n")
        four.write(root / "recorded/fast")
        check(ledger.recorded("fast", "D10") == verdict.HOLDS, "without a list a row is its newest run's")
        pooled.keep([run(3)])
        check(pooled.read() == [run(3)] and not pooled.earlier("full", "D10"), "a listed run is of one size")
        check(page.read("fast")["D10"].verdict == ledger.recorded("fast", "D10") == verdict.FLIPS, "page and ledger count all runs")
        check(page.counts(page.read("fast"))[verdict.FLIPS] == 1, "so do the counts at the page's head")
        change = ("D10", verdict.HOLDS, verdict.FLIPS)
        check(ledger.by_pooling("fast") == [change] and not ledger.said("fast", *change), "what a list turns needs an entry, too")
        ledger.note([change], "fast", verdict.RECORDED)
        check(not ledger.by_pooling("fast"), "and is noted once")
        four.write(root / "fresh/fast")
        check(not ledger.changed("fast"), "the same recordings judged again are no further run")
        ledger.record("fast", set())
        check(pooled.read() == [run(3)], "and are not listed")
        made(data(1.2, 1.2, 1.2, 1.2, 1.2)).write(root / "fresh/fast")
        check(ledger.fresh("fast", "D10") == verdict.HOLDS, "a further run counts with all before: twelve of fifteen")
        ledger.record("fast", set())
        one = page.read("fast")["D10"]
        check((one.held, one.repeats, one.runs, len(pooled.read())) == (12, 15, 3, 2), "the run whose place it takes is listed then")


def kept():
    """The points for the next version meet what a program can check of the rule that is written beside them."""
    with open(ROOT / "bench/outside/kept.csv", encoding="utf-8", newline="") as file:
        for point in csv.DictReader(file):
            whole = all(point[key] for key in ("url", "year", "machine", "threads", "value")) and "not named" not in point["machine"]
            check(whole, f"{point['id']} of kept.csv can be used")


def reused():
    """What `--reuse` keeps."""
    with tempfile.TemporaryDirectory() as name:
        profile = pathlib.Path(name)
        check(reuse.kept(profile) is None, "a recording that is not there is made")
        for status, keeps in (0, True), (143, False):
            (profile / "manifest.json").write_text(json.dumps({"complete": True, "exit_status": status}), encoding="utf-8")
            check((reuse.kept(profile) is not None) == keeps, f"a recording whose program ended with {status} is reused: {keeps}")


def documents():
    """Before `changes` points the judge elsewhere."""
    check(page.PAGE.read_text(encoding="utf-8") == page.text(), "docs/findings.md is what the recorded verdicts make")
    last = {row[1:3]: row[4] for row in ledger.changes()}
    other = [" ".join(one) for one, noted in last.items() if ledger.recorded(*one) != noted]
    check(not other, f"the last change noted of a row is to the verdict that the page has: not of {', '.join(other)}")
    check(not ledger.unused(), f"each entry of CHANGELOG on a verdict is of a recorded change: not {ledger.unused()}")
    unknown = [f.name for size in verdict.SIZES for f in (verdict.RECORDED / size).glob("*.json") if f.stem not in CRITERIA]
    check(not unknown, f"each recorded verdict is a criterion's: not {', '.join(unknown)}")
    for size in verdict.SIZES:
        without = [i for i, one in page.read(size).items() if one.verdict in (verdict.FAILS, verdict.FLIPS) and not one.reason]
        check(not without, f"{size}: each row that does not hold has a reason: not {', '.join(without)}")
        recorded = {i: one for i, one in page.read(size).items() if one.verdict != verdict.UNTESTED}
        for kind in (DEAD, RIVAL):
            few = [i for i, one in recorded.items() if not one.lacks.get(kind) and all(s.kind != kind for s in one.stand_ins)]
            check(not few, f"{size}: each row has a {kind}, or says why not: not {', '.join(few)}")
        guessed = [i for i, one in recorded.items() if one.tests and one.reason.startswith("Tested")
                   and all(t.instead or t.plausible or t.repeats < 5 for t in one.tests if t.holds)]
        check(not guessed, f"{size}: no reason is known by few recordings, or by what judges something else: not {', '.join(guessed)}")
        shut = [i for i, one in recorded.items() if not one.ranges and not one.closed and not one.not_run]
        check(not shut, f"{size}: each row has a range, or says why not: not {', '.join(shut)}")


if __name__ == "__main__":
    words()
    figures()
    ranged()
    stand_ins()
    rows()
    clocks()
    tabled()
    criteria()
    files()
    kept()
    reused()
    documents()
    readme.compare(check)
    changes()
    pooling()
    check.end()
