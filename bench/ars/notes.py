"""What the rows differ in from the paper, and reasons, each with the run that tested it."""

from statistics import median

from choices import CHOSEN, RATIOS, varied
from findings import CHECKS, at, best, near, over, speedup
from programs import ALGORITHMS, PROGRAMS
from study import in_scenario

COMMON = ("Programs of the paper's sizes, written after SPLASH-2's; every access of an emulated run of 4 threads, to shared data in the "
          "computation only; intervals of 20,000 of these. The paper's monitor may have been behind caches, ours is not (a range). "
          + "; ".join(f"{name}: {row.differs}" for name, row in PROGRAMS.items()) + ".")
OWN = {
    "A2": "“The range that the unknown latencies give” is read as that of ratios 10 to 100.",
    "A3": "“Best migration” is the fastest of the five algorithms; “below 0.98 or similar” is at most 1.05.",
    "A9": "Read as of Out-W alone: under other algorithms the paper's own LU has 10 %.",
    "A11": "An additional migration takes a page to a node to which Out-U does not take it. “When” is in percent of the run's "
           "accesses: the median of the additional ones, and of all of Out-U's.",
}
REMOTE_ONLY = ("out-u", "out-w")
SEES_ALL = ("out-u-local", "out-w-local")


def differs(identifier):
    return f"{OWN.get(identifier, '')} {COMMON}".strip()


class Reasons:
    """Sentences whose numbers are of the study at hand."""

    def __init__(self, study, sizes):
        self.study, self.sizes, self.repeats = study, sizes, study.repeats()

    def middle(self, of, repeats=None):
        return median(of(data) for data in repeats or self.repeats)

    def with_(self, name, value):
        """Data with one open quantity at another value."""
        return [self.study.data(varied(name)[value], take) for take in self.study.range_takes]

    def total(self, count, policies, programs=tuple(PROGRAMS), repeats=None):
        return self.middle(lambda data: sum(at(data, p, a)[count] for p in programs for a in policies), repeats)

    def returns(self):
        pairs = [f"{self.total('ping_pongs', policies):,.0f} of {self.total('migrations', policies):,.0f} moves"
                 for policies in (REMOTE_ONLY, SEES_ALL)]
        return ("Who decides does not see the home's own accesses: where a page is used most, the few accesses of the others stand out "
                f"among themselves, and it leaves and comes back. Tested: under Out-U and Out-W {pairs[0]} are ping-pongs, under their "
                f"-local variants, which see the home's accesses, {pairs[1]}.")

    def slow(self):
        below = [f"{p} {name} {gain:.2f}" for p in PROGRAMS for name, a in ALGORITHMS.items()
                 if (gain := self.middle(lambda data, p=p, a=a: speedup(data, p, a))) <= 1.02]
        least = self.middle(lambda data: min(speedup(data, p, a) for p in PROGRAMS for a in SEES_ALL))
        forgets = self.with_("half-life", "1")
        radix = [f"{self.total('migrations', ['in-w'], ['RADIX'], data):,.0f}" for data in (None, forgets)]
        gain = self.middle(lambda data: speedup(data, "RADIX", "in-w"), forgets)
        return (f"Not faster: {', '.join(below)}. {self.returns()} The least speed-up of the -local variants is {least:.2f}. In-W on RADIX "
                f"decides by counts of phases that are over: with counts halved in every interval it makes {radix[1]} moves instead of "
                f"{radix[0]}, and is {gain:.2f} times as fast as unoptimised.")

    def sor(self):
        first = self.repeats[0]["by_ratio"][CHOSEN.ratio]["SOR"]["out-u"]["scenarios"]
        name = next(s for s in first if s.startswith("assumed_ns") and float(s.split()[1]) > 1)
        busy = [in_scenario(data, name) for data in self.repeats]
        gains = [self.middle(lambda data, r=r: best(data, "SOR", r), busy) for r in RATIOS]
        cached = self.middle(lambda data: best(data, "SOR"), self.with_("caches before the monitor", "both"))
        compute = name.split()[1]
        return (f"All but little of the predicted time is waiting for memory. Tested: with {compute} ns of computing for each access on "
                f"the host, {compute} × {CHOSEN.factor:g} on the cluster, SOR gains {gains[0]:.2f} to {gains[-1]:.2f}; with caches that "
                f"never lose a line, {cached:.2f}.")

    def static(self):
        stay, move = self.sizes["WATER"][2]
        return (f"WATER's users hardly change. Tested by counting: with every page where it is used most over the run {100 * stay:.0f} % "
                "of its accesses are local; with every page in each interval where it is used most then, known beforehand, "
                f"{100 * move:.0f} %. Out-W-local moves {self.total('migrations', ['out-w-local'], ['WATER']):.0f} pages, none of them "
                f"more than {'once' if not self.total('multiple', ['out-w-local'], ['WATER']) else 'twice'}.")

    def neighbours(self, programs):
        by_window = []
        for value in varied("window"):
            data = self.with_("window", value)
            each = ", ".join(f"{p} {self.middle(lambda d, p=p: over(d, p, 'out-w', 'out-u'), data):.2f}" for p in programs)
            by_window.append(f"{value}: {each}")
        return ("The neighbours make the difference: with a window of 0 Out-W is Out-U. Tested, by window: "
                f"{'; '.join(by_window)}. Why they help in the paper is not known.")

    def incoming(self):
        each = [f"{p} {self.middle(lambda data, p=p: over(data, p, 'in-w', 'out-u')):.2f}" for p in PROGRAMS]
        return f"On LU and WATER it is Out-W that is slow (A5). Tested: In-W to Out-U is {', '.join(each)}."

    def counted(self):
        def found(data):
            return CHECKS["A10"].figures(data)
        cached = self.middle(lambda data: found(data)["within a factor of 3, of 25"], self.with_("caches before the monitor", "monitor"))
        local = self.middle(lambda data: sum(near(name, n) for name, n in found(data).items() if name.endswith("-local")))
        return (f"{self.returns()} Of the 10 counts of -local variants {local:g} are within a factor of 3. Of all 25 {cached:g} are where "
                "the monitor is behind caches that never lose a line (tested). Why the paper's -local variants move fewer pages is not "
                "known.")

    def all(self):
        return {"A1": self.slow(), "A2": self.sor(), "A3": self.static(), "A4": self.returns(),
                "A5": self.neighbours(("LU", "WATER")), "A6": self.neighbours(("FFT", "RADIX", "SOR")), "A7": self.incoming(),
                "A8": self.returns(), "A9": f"{self.static()} {self.returns()}", "A10": self.counted(), "A11": self.returns()}
