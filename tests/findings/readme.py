"""README's figures are the recorded verdicts': each sentence that has some is looked for with the figures as they are now."""

import json
import pathlib
import re

from judge import CRITERIA, page, verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# What of a sentence with a link to a row is another page's: as README says it, the page, as it says it.
ELSEWHERE = ("from 42 % remote accesses to less than 1 %", "docs/matched.md", "from 42 % remote accesses to less than one")
LINK = re.compile(r"\[[^]]*\]\([^)]*\)")


def middle(one, name):
    return one.figures[name].median


def figures(rows, outside):
    """What README says with figures of rows."""
    s3, s4 = rows["S3"], rows["S4"]
    bandwidth, hops = (middle(rows["S2"], f"with {what}") for what in ("bandwidth", "hops"))
    ours, theirs = (WORDS[round(middle(s3, name))] for name in ("of the paper's", "the paper has"))
    machines, points = WORDS[len({point["machine"] for point in outside["points"]})], len(outside["points"])
    return [
        f"the best is {middle(s4, 'kmedian best'):.0f} % above the mean and the worst {-middle(s4, 'kmedian worst'):.0f} % below",
        f"so [S4](docs/findings.md#S4) {s4.verdict} as stated",
        f"they correlate {bandwidth:.2f} and {hops:.2f} with predicted times, [S2](docs/findings.md#S2)",
        f"{ours} of the paper's {theirs}, [S3](docs/findings.md#S3)",
        f"[{len(CRITERIA)} of them](docs/findings.md)",
        f"what others measured on {machines} of them",
        f"{points - outside['inside_range']} of the {points} measured values lie outside the predicted range",
    ]


def claims(rows, outside):
    """What it says of rows without a figure, and whether it is so."""
    bandwidth, hops = (abs(middle(rows["S2"], f"with {what}")) for what in ("bandwidth", "hops"))
    return {
        "Bandwidth counts for more than the number of hops": bandwidth > hops,
        "As the paper states them, neither row holds": verdict.HOLDS not in (rows["S2"].verdict, rows["S3"].verdict),
        "Most do not hold on our programs": sum(one.verdict == verdict.FAILS for one in rows.values()) > len(CRITERIA) / 2,
        "the same for programs like the paper's: [M4](docs/findings.md#M4)": rows["M4"].verdict == verdict.HOLDS,
        "half of the predictions are more than a quarter off": outside["error"]["median"] > 25,
    }


def uncompared(text, known):
    """Sentences that link to a row and have a figure beside it that is none of the known ones."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = []
    for sentence in (s for line in prose.splitlines() for s in re.split(r"(?<=\.) ", line) if "docs/findings.md#" in s):
        rest = sentence
        for said in known:
            rest = rest.replace(said, "")
        found += [sentence] if re.search(r"\d", LINK.sub("", rest)) else []
    return found


def compare(check):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = page.read("fast") | page.read("full")
    outside = json.loads((verdict.RECORDED / "outside.json").read_text(encoding="utf-8"))
    known, (said_here, file, said_there) = figures(rows, outside), ELSEWHERE
    for said in known:
        check(said in text, f"README has the recorded verdicts' figures: {said}")
    for said, so in claims(rows, outside).items():
        check(so and said in text, f"README says, and it is so by the recorded verdicts: {said}")
    check(said_here in text and said_there in (ROOT / file).read_text(encoding="utf-8"), f"README says what {file} says: {said_here}")
    left = uncompared(text, [*known, said_here])
    check(not left, f"figures of README beside links to rows are compared: not those of {'; '.join(left)}")
    stale = uncompared("The best is 7 % above ([S4](docs/findings.md#S4)). [M4](docs/findings.md#M4).", known)
    check(len(stale) == 1, "a figure beside a link to a row that nothing compares is found")
