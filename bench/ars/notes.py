"""What the rows differ in from the paper, and what was tested of those that do not hold, in this run's own figures."""

from statistics import median

from choices import CHOSEN, ONCE, varied
from findings import COUNTED_RIGHT, LOCAL, at, faster, over, swapped
from judge.check import BETTER, Test
from programs import CHANGES, PROGRAMS
from study import in_scenario

COMMON = ("Programs of the paper's sizes, written after SPLASH-2's; every access of an emulated run of 4 threads, to shared data in the "
          "computation only; intervals of 20,000 of these. The paper's monitor may have been behind caches, ours is not (a range). "
          + "; ".join(f"{name}: {row.differs}" for name, row in PROGRAMS.items()) + ".")
OWN = {
    "A2": "“The range that the unknown latencies give” is read as that of ratios 10 to 100.",
    "A3": "“Best migration” is the fastest of the five algorithms; “below 0.98 or similar” is at most 1.05.",
    "A9": "Read as of Out-W alone: under other algorithms the paper's own LU has 10 %.",
    "A11": "“At most 2 % incorrect” is read as of each program, “earlier” as of LU and WATER; a range has both of these two. An "
           "additional migration takes a page to a node to which Out-U does not take it. “When” is in percent of the run's accesses: the "
           "median of the additional ones, and of all of Out-U's.",
}
REMOTE_ONLY, SEES_ALL = tuple(LOCAL), tuple(LOCAL.values())
SEEING = ("with Out-U-local and Out-W-local, which see the accesses that a page's own node makes, in the place of Out-U and Out-W, which "
          "do not")
CHANGING = f"with shift ({CHANGES['SHIFT'].says}; its parts change owners half-way) in WATER's place"
STAYING = "with a rest that lets no page move twice"


def differs(identifier):
    return f"{OWN.get(identifier, '')} {COMMON}".strip()


class Reasons:
    """Of the study at hand."""

    def __init__(self, study, sizes):
        self.study, self.sizes, self.repeats = study, sizes, study.repeats()

    def middle(self, of, repeats=None):
        return median(of(data) for data in repeats or self.repeats)

    def with_(self, name, value):
        """Data with one open quantity at another value."""
        return [self.study.data(varied(name)[value], take) for take in self.study.range_takes]

    def slower(self, repeats):
        """Figures of A1 that are no gain."""
        each = [faster(data) for data in repeats]
        return {name: gain for name in each[0] if (gain := median(one[name] for one in each)) <= BETTER}

    def total(self, count, policies, programs=tuple(PROGRAMS)):
        return self.middle(lambda data: sum(at(data, p, a)[count] for p in programs for a in policies))

    # ---- What is taken away. ----

    def seeing(self, repeats=None):
        return [swapped(LOCAL)(data) for data in repeats or self.repeats]

    def busy(self):
        """What computing takes at the end of its range, and with how much of it an access."""
        first = self.repeats[0]["by_ratio"][CHOSEN.ratio]["SOR"]["out-u"]["scenarios"]
        name = next(s for s in first if s.startswith("assumed_ns") and float(s.split()[1]) > 1)
        return name.split()[1], [in_scenario(data, name) for data in self.repeats]

    def tests(self, row):
        seeing, staying = Test(SEEING, self.seeing()), Test(STAYING, self.study.tried(ONCE))
        compute, busy = self.busy()
        right, changing = (COUNTED_RIGHT,), self.study.changing("WATER")
        cached = self.with_("caches before the monitor", "monitor")
        found = {
            "A1": [self.of_gains(SEEING, self.seeing()), self.of_gains(STAYING, self.study.tried(ONCE)),
                   self.of_gains("with the -local variants, and counts halved in every interval, so that In-W forgets phases that are over",
                                 self.seeing(self.with_("half-life", "1")))],
            "A2": [Test(f"with {compute} ns of computing for each access on the host, {CHOSEN.factor:g} times that on the cluster", busy),
                   Test("with caches that never lose a line", self.with_("caches before the monitor", "both"))],
            "A3": [Test(CHANGING, changing, ("WATER",), instead=True)],
            "A4": [staying], "A5": [staying], "A6": [staying],
            "A7": [Test("with Out-U in Out-W's place", [swapped({"out-w": "out-u"})(data) for data in self.repeats]), staying],
            "A8": [seeing, staying],
            "A9": [seeing, Test(CHANGING, changing, instead=True),
                   Test(f"with both: {CHANGING.removeprefix('with ')}, and Out-W-local for Out-W", self.seeing(changing), instead=True)],
            "A10": [Test(SEEING, self.seeing(), right), Test(STAYING, self.study.tried(ONCE), right),
                    Test("with the monitor behind caches that never lose a line", cached, right)],
            "A11": [seeing],
        }
        return found[row]

    def of_gains(self, what, data):
        """A test of A1 that names what is no gain, before or then."""
        return Test(what, data, tuple(self.slower(self.repeats) | self.slower(data)))

    # ---- What is said. ----

    def of_row(self, row):
        said = {"A1": self.slow, "A3": self.static, "A5": self.neighbours, "A6": self.neighbours, "A8": self.returns, "A9": self.static,
                "A10": self.returns}
        return said[row]() if row in said else ""

    def returns(self):
        pairs = [f"{self.total('ping_pongs', policies):,.0f} of {self.total('migrations', policies):,.0f}"
                 for policies in (REMOTE_ONLY, SEES_ALL)]
        return f"Of the moves of Out-U and Out-W {pairs[0]} are ping-pongs, of those of their -local variants {pairs[1]}."

    def neighbours(self):
        """Out-W to Out-U by window, which has what Out-W is besides Out-U: with none it is the same."""
        def each(data):
            return ", ".join(f"{p} {self.middle(lambda d, p=p: over(d, p, 'out-w', 'out-u'), data):.2f}" for p in PROGRAMS)
        found = "; ".join(f"of {value} pages: {each(self.with_('window', value))}" for value in varied("window"))
        return f"With a window of 0, so without neighbours, Out-W is Out-U. Speed of Out-W over Out-U. Window {found}."

    def slow(self):
        return f"Not faster: {', '.join(f'{name} {gain:.2f}' for name, gain in self.slower(self.repeats).items())}."

    def static(self):
        stay, move = self.sizes["WATER"][2]
        return (f"WATER's users hardly change: with every page where it is used most over the run {100 * stay:.0f} % of its accesses are "
                f"local; with every page in each interval where it is used most then, known beforehand, {100 * move:.0f} %.")
