"""The judge of findings: what each word of a verdict takes, and that the page is made from the verdict files."""

import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from judge import CRITERIA, Check, judge, ledger, page, untested, verdict  # noqa: E402
from judge.check import Range  # noqa: E402

passed = failed = 0


def expect(what, holds):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    if not holds:
        print(f"FAILED {what}")


def data(*gains):
    return [{"gain": gain} for gain in gains]


def made(repeats, **options):
    """The verdict on a policy that has to be faster by more than 2 %."""
    options.setdefault("stand_ins", {"a policy that never moves": lambda _: {"gain": 1.0}})
    check = Check("D10", lambda d: {"gain": d["gain"]}, lambda f: f["gain"] > 1.02, options.pop("stand_ins"))
    return judge(check, repeats, size="fast", basis="simulation", **options)


def words():
    expect("five of five hold", made(data(1.1, 1.2, 1.1, 1.3, 1.1)).verdict == verdict.HOLDS)
    expect("four of five hold", made(data(1.1, 1.2, 1.0, 1.3, 1.1)).verdict == verdict.HOLDS)
    three = made(data(1.1, 1.0, 1.0, 1.3, 1.1))
    expect("three of five are undecided", (three.verdict, three.held) == (verdict.FLIPS, 3))
    expect("a median that fails does not hold", made(data(1.1, 1.0, 1.0, 1.0, 1.1)).verdict == verdict.FAILS)
    expect("a tie is no win", made(data(1.02, 1.02, 1.02, 1.02, 1.02)).verdict == verdict.FAILS)
    passing = {"one that never moves": lambda d: d}
    expect("a check that its stand-in passes cannot fail", made(data(1.1, 1.1, 1.1), stand_ins=passing).verdict == verdict.UNABLE)
    reasons = [made(data(gain), reason="why").reason for gain in (1.0, 1.1)]
    expect("a reason is of a row that does not hold", reasons == ["why", ""])
    expect("one without is not known", made(data(1.0)).reason == "Not known.")
    assumed = [Range("window", "2 to 8", {"2": data(1.1), "8": data(1.0)})]
    expect("and where it would hold is said", made(data(1.0), ranges=assumed).reason == "Not known. By the ranges it holds at window 2.")
    expect("one that fails is able to", made(data(1.0), stand_ins={"one that wins": lambda _: {"gain": 2.0}}).verdict == verdict.FAILS)
    figure = three.figures["gain"]
    expect("median, least and most are the repeats'", (figure.median, figure.least, figure.most) == (1.1, 1.0, 1.3))
    over = made(data(1.1), ranges=[Range("misses in flight", "2 to 12", {"2": data(1.1), "12": data(1.0)})])
    expect("a range's share is of its values", over.ranges[0].held == {"2": True, "12": False} and over.ranges[0].share == 0.5)


def criteria():
    expect("there are 54 criteria", len(CRITERIA) == 54)
    shared = ROOT.parent / "shared/findings/findings.csv"
    if shared.exists():
        expect("the criteria are those that were given", shared.read_bytes() == (ROOT / "bench/judge/criteria.csv").read_bytes())


def files():
    with tempfile.TemporaryDirectory() as folder:
        for one in (made(data(1.1, 1.2), ranges=[Range("r", "s", {"1": data(1.1)})]), untested("S11", "one node", size="fast")):
            one.write(pathlib.Path(folder))
            expect(f"{one.id} is read as written", verdict.read(pathlib.Path(folder) / f"{one.id}.json") == one)


def changes():
    """The ledger, on a tree of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        verdict.RECORDED, ledger.FRESH, verdict.ROOT = root / "recorded", root / "fresh", root
        (root / "CHANGELOG.md").write_text("# Changelog\n\n## next\n\nnothing about it\n\n## 0.1\n\nD10 holds\n")
        made(data(1.1)).write(root / "recorded/fast")
        made(data(1.0)).write(root / "fresh/fast")
        found = ledger.changed("fast")
        expect("a verdict that changed is seen", found == [("D10", verdict.HOLDS, verdict.FAILS)])
        expect("what an older version said does not count", not ledger.mentioned("D10", verdict.HOLDS, verdict.FAILS, ledger.unreleased()))
        ledger.record("fast", {"D10"})
        expect("the recorded one stays", verdict.read(root / "recorded/fast/D10.json").verdict == verdict.HOLDS)
        ledger.record("fast", set())
        expect("one that is said is taken over", verdict.read(root / "recorded/fast/D10.json").verdict == verdict.FAILS)
        (root / "fresh/fast/D10.json").unlink()
        expect("one that is missing is seen", ledger.changed("fast") == [("D10", verdict.FAILS, ledger.MISSING)])
        said = "D10: holds → does not hold"
        both = [ledger.mentioned("D10", verdict.HOLDS, now, said) for now in (verdict.FAILS, verdict.FLIPS)]
        expect("a change is said as it is", both == [True, False])
        expect("D1 is not said by D10", not ledger.mentioned("D1", verdict.HOLDS, verdict.FAILS, said.replace("D10", "D1x")))


def documents():
    """Before `changes` points the judge elsewhere."""
    expect("docs/findings.md is what the recorded verdicts make", page.PAGE.read_text(encoding="utf-8") == page.text())
    unknown = [f.name for size in verdict.SIZES for f in (verdict.RECORDED / size).glob("*.json") if f.stem not in CRITERIA]
    expect(f"each recorded verdict is a criterion's: not {', '.join(unknown)}", not unknown)
    for size in verdict.SIZES:
        without = [i for i, one in page.read(size).items() if one.verdict in (verdict.FAILS, verdict.FLIPS) and not one.reason]
        expect(f"{size}: each row that does not hold has a reason: not {', '.join(without)}", not without)


if __name__ == "__main__":
    words()
    criteria()
    files()
    documents()
    changes()
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
