"""The judge of findings: what each word of a verdict takes, and that the page is made from the verdict files."""

import pathlib
import sys
import tempfile
from dataclasses import replace

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

import checked  # noqa: E402
import tables  # noqa: E402
from judge import CRITERIA, Check, inputs, judge, ledger, page, untested, verdict  # noqa: E402
from judge.check import Range, Test  # noqa: E402

check = checked.Checks(quiet=True)


def data(*gains):
    return [{"gain": gain} for gain in gains]


def made(repeats, **options):
    """The verdict on a policy that has to be faster by more than 2 %."""
    options.setdefault("stand_ins", {"a policy that never moves": lambda _: {"gain": 1.0}})
    faster = Check("D10", lambda d: {"gain": d["gain"]}, lambda f: f["gain"] > 1.02, options.pop("stand_ins"))
    return judge(faster, repeats, size="fast", basis="simulation", **options)


def words():
    check(made(data(1.1, 1.2, 1.1, 1.3, 1.1)).verdict == verdict.HOLDS, "five of five hold")
    check(made(data(1.1, 1.2, 1.0, 1.3, 1.1)).verdict == verdict.HOLDS, "four of five hold")
    three = made(data(1.1, 1.0, 1.0, 1.3, 1.1))
    check((three.verdict, three.held) == (verdict.FLIPS, 3), "three of five are undecided")
    check(made(data(1.1, 1.0, 1.0, 1.0, 1.1)).verdict == verdict.FAILS, "a median that fails does not hold")
    check(made(data(1.02, 1.02, 1.02, 1.02, 1.02)).verdict == verdict.FAILS, "a tie is no win")
    passing = {"one that never moves": lambda d: d}
    check(made(data(1.1, 1.1, 1.1), stand_ins=passing).verdict == verdict.UNABLE, "a check that its stand-in passes cannot fail")
    reasons = [made(data(gain), reason="why").reason for gain in (1.0, 1.1)]
    check(reasons == ["Not known. why", ""], "what was looked at is of a row that does not hold")
    check(made(data(1.0)).reason == "Not known.", "one without is not known")
    assumed = [Range("window", "2 to 8", {"2": data(1.1), "8": data(1.0)})]
    check(made(data(1.0), ranges=assumed).reason == "Not known. By the ranges it holds at window 2.", "and where it would hold is said")
    known = made(data(1.0), tests=[Test("without the cause", data(1.1, 1.1))])
    said = "Tested without the cause (2 recordings): gain 1.10; the row holds then."
    check(known.reason == said, "a reason is known where the row holds without it")
    still = made(data(1.0), tests=[Test("without that", data(1.01))]).reason
    check(still == "Not known. Tested without that (one recording): gain 1.01; the row does not hold then.", "and not where it does not")
    check(not made(data(1.1), tests=[Test("without the cause", data(1.1))]).tests, "nothing is tested of a row that holds")
    check(made(data(1.0), stand_ins={"one that wins": lambda _: {"gain": 2.0}}).verdict == verdict.FAILS, "one that fails is able to")
    figure = three.figures["gain"]
    check((figure.median, figure.least, figure.most) == (1.1, 1.0, 1.3), "median, least and most are the repeats'")
    over = made(data(1.1), ranges=[Range("misses in flight", "2 to 12", {"2": data(1.1), "12": data(1.0)})])
    check(over.ranges[0].held == {"2": True, "12": False} and over.ranges[0].share == 0.5, "a range's share is of its values")
    each = [Range("misses in flight", "2 to 12", {"2": data(1.1, 1.1, 1.1, 1.0, 1.0), "12": data(1.1, 1.1, 1.1, 1.1, 1.0)})]
    over = made(data(1.1), ranges=each)
    check(over.ranges[0].held == {"2": False, "12": True}, "a value of a range holds as a verdict does: the median and four of five")
    check(over.ranges[0].repeats == 5, "and says of how many recordings it is")


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
        check(not ledger.mentioned("D10", verdict.HOLDS, verdict.FAILS, ledger.unreleased()), "what an older version said does not count")
        ledger.record("fast", {"D10"})
        check(verdict.read(root / "recorded/fast/D10.json").verdict == verdict.HOLDS, "the recorded one stays")
        ledger.record("fast", set())
        check(verdict.read(root / "recorded/fast/D10.json").verdict == verdict.FAILS, "one that is said is taken over")
        (root / "fresh/fast/D10.json").unlink()
        check(ledger.changed("fast") == [("D10", verdict.FAILS, ledger.MISSING)], "one that is missing is seen")
        inputs.write("ars", "fast", [["given", 4], ["read back", 2, True], ["not so", 3, False]])
        inputs.record("fast")
        found = [["given", "4", "given"], ["read back", "2", "yes"], ["not so", "3", "NO"]]
        check(inputs.read() == {"ARS": found}, "inputs are kept apart, and say what is not as it should be")
        said = "D10: holds → does not hold"
        both = [ledger.mentioned("D10", verdict.HOLDS, now, said) for now in (verdict.FAILS, verdict.FLIPS)]
        check(both == [True, False], "a change is said as it is")
        check(not ledger.mentioned("D1", verdict.HOLDS, verdict.FAILS, said.replace("D10", "D1x")), "D1 is not said by D10")


def since_lacks(size, identifier):
    """Whether a verdict is of a run that wrote why a stand-in is missing."""
    return '"lacks"' in (verdict.RECORDED / size / f"{identifier}.json").read_text(encoding="utf-8")


def documents():
    """Before `changes` points the judge elsewhere."""
    check(page.PAGE.read_text(encoding="utf-8") == page.text(), "docs/findings.md is what the recorded verdicts make")
    unknown = [f.name for size in verdict.SIZES for f in (verdict.RECORDED / size).glob("*.json") if f.stem not in CRITERIA]
    check(not unknown, f"each recorded verdict is a criterion's: not {', '.join(unknown)}")
    for size in verdict.SIZES:
        without = [i for i, one in page.read(size).items() if one.verdict in (verdict.FAILS, verdict.FLIPS) and not one.reason]
        check(not without, f"{size}: each row that does not hold has a reason: not {', '.join(without)}")
        few = [i for i, one in page.read(size).items() if len(one.stand_ins) == 1 and not one.lacks and since_lacks(size, i)]
        check(not few, f"{size}: each row has a dead policy and a rival, or says why not: not {', '.join(few)}")


if __name__ == "__main__":
    words()
    tabled()
    criteria()
    files()
    documents()
    changes()
    check.end()
