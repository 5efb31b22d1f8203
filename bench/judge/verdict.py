"""What came out for a finding: a JSON file a row, from which the pages' tables are made."""

import json
import pathlib
import subprocess
from dataclasses import asdict, dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of runs of full size, and of those that fit a nightly run.
SIZES = ("full", "fast")
RECORDED = ROOT / "bench/verdicts"
WORDS = HOLDS, FAILS, FLIPS, UNTESTED, UNABLE = "holds", "does not hold", "undecided", "untested", "cannot fail"
# What stands in for a policy: one that never moves, another one of the paper's, or an input without the property that is claimed.
DEAD, RIVAL, INPUT = KINDS = ("dead policy", "rival", "without the property")
OTHER = "another policy"  # whether it passes is shown, and turns no verdict


@dataclass(frozen=True)
class Figure:
    """A number over the repeats."""

    median: float
    least: float
    most: float


@dataclass(frozen=True)
class StandIn:
    """What took the place of the policy that is judged, and whether the criterion let it pass. It must not."""

    name: str
    passes: bool
    kind: str = ""  # one of KINDS, or OTHER; of a verdict from before they were told apart, none


@dataclass(frozen=True)
class Assumed:
    """A quantity that the paper does not give: its plausible values, and for which of them the finding holds."""

    name: str
    source: str  # of the range
    held: dict  # value as text → bool
    repeats: int = 0  # of each value, at least; 0: a verdict from before this was counted

    @property
    def share(self):
        """Of the range, in 0 … 1."""
        return sum(self.held.values()) / len(self.held)


@dataclass(frozen=True)
class Tested:
    """A run that takes away what a reason names, and what became of the row."""

    what: str
    figures: dict  # name → Figure
    holds: bool
    repeats: int
    unit: str = ""
    part: bool = False  # of a row of which only a part is judged
    instead: bool = False  # something else was judged than the row does, so no reason is known by it
    units: dict = field(default_factory=dict)
    words: str = ""
    plausible: bool = False  # a value of one of the row's ranges, or of what else is open, so no reason is known by it

    def sentence(self):
        runs = "one recording" if self.repeats == 1 else f"{self.repeats} recordings"
        row = "What is judged of the row" if self.part else "The row"
        then = f"{row} {'holds' if self.holds else 'does not hold'} then"
        but = ""
        if self.instead:
            but = ", but this judges something else than the row does, and so is no reason"
        elif self.plausible:
            but = ", but this may be so without taking anything away, and so is no reason"
        return f"Tested {self.what} ({runs}): {told(self)}. {then}{but}."


@dataclass(frozen=True)
class Verdict:
    """Of one finding. `verdict` is one of the five words above."""

    id: str
    verdict: str
    size: str
    basis: str  # simulation, laboratory, recording: how the figures came about
    unit: str = ""
    figures: dict = field(default_factory=dict)  # name → Figure
    repeats: int = 0
    held: int = 0  # of the repeats
    each: list = field(default_factory=list)  # figures of each repeat, name → value; of a verdict from before they were kept, none
    stand_ins: list = field(default_factory=list)
    lacks: dict = field(default_factory=dict)  # kind → why none can stand in
    remark: str = ""  # on stand-ins that pass by definition
    ranges: list = field(default_factory=list)
    closed: str = ""  # of a row without ranges: why nothing is left open
    not_run: str = ""  # of a row without ranges: what is left open and was not run
    part: str = ""  # what of the criterion cannot be judged
    tests: list = field(default_factory=list)  # of the reason
    differs: str = ""  # sizes, decomposition, slices: where ours are not the paper's
    reason: str = ""  # of a finding that does not hold, and by which run it was tested
    units: dict = field(default_factory=dict)  # name → unit, of figures that have another one than `unit`
    words: str = ""  # the figures as a sentence, where their names alone would not be understood
    commit: str = ""
    host_ghz: float = 0.0  # the recording host's clock, from which core factors follow

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (folder / f"{self.id}.json").write_text(text + "\n", encoding="utf-8")


def read(file):
    found = json.loads(file.read_text(encoding="utf-8"))
    found["figures"] = figures(found["figures"])
    found["stand_ins"] = [StandIn(**one) for one in found["stand_ins"]]
    found["ranges"] = [Assumed(**one) for one in found["ranges"]]
    found["tests"] = [Tested(**{**one, "figures": figures(one["figures"])}) for one in found.get("tests", ())]
    if isinstance(found.get("lacks"), str):  # from before kinds were told apart
        found["remark"], found["lacks"] = found["lacks"], {}
    return Verdict(**found)


def figures(by_name):
    return {name: Figure(**one) for name, one in by_name.items()}


def number(value):
    """Three digits at most, as people read it."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 or value == int(value) else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def told(one):
    """The figures of a verdict or a test. Names may have numbers in them, so each is set off from its value."""
    each = (f"{name}: {spread(figure, one.units.get(name, one.unit))}" for name, figure in one.figures.items())
    return one.words or "; ".join(each)


def spread(figure, unit=""):
    """The median, with least and most over the repeats where they differ."""
    if figure.median != figure.median:  # a share of nothing
        return "none"
    text = f"{number(figure.median)}{unit}"
    if figure.least != figure.most:
        text += f" [{number(figure.least)}–{number(figure.most)}]"
    return text


def commit():
    """Of the tree that ran, with a + where it had changes."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/verdicts", ":!docs")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
