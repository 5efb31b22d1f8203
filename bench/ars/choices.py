"""What the paper leaves open: the default of each quantity, why it is that, and the range that is run.

Defaults follow from the paper's text or from a sentence that does not mention results; they were written down before the checks
were run with them. The reasons of In-W's average and pages named results at first: they were written anew, and the defaults kept.
Section numbers are the paper's. Each range is run with the other quantities at their defaults."""

from dataclasses import dataclass, replace

from judge import cores

MACHINE = "sci-cluster-4"


@dataclass(frozen=True)
class Choice:
    """One setting of everything that the paper does not give."""

    # Accesses to shared data between decisions. The text names no interval; an on-line tool does not know a program's iterations, so
    # it is one amount for all programs: the geometric middle of its range.
    interval: int = 20_000
    # Intervals after which counts are halved; 0 never. Nothing in the text says that histograms are reset or age.
    half_life: int = 0
    # Accesses from which on a page is judged. The text has a threshold and no minimum besides it.
    minimum: int | str = 1
    # How "two times of the average references performed to a page" is read. The text says why it is two: if accesses of the
    # nodes that do not dominate differ by less than a factor of two, none of them exceeds it. That is so if a page is compared
    # with its own average over the remote nodes. (max − average > 2 · average, literally, no page of four nodes fulfils.)
    reading: str = "page"
    # Pages to each side whose accesses count too. "A closer page is assigned a higher weight" needs neighbours at two distances;
    # dealt round-robin over four nodes they are 4 and 8 pages away.
    window: int = 8
    # The simplest weight that falls with distance, as the text has it.
    weight: str = "linear"
    # Over which remote pages In-W's average is: "all remote pages accessed by the local node" have relative references, and "the average"
    # is not said to be of these, nor whether a page counts that the node has not accessed so far. Left open by the paper; what is first
    # in its text, "all remote pages", is taken, as the product does: what the bench computes stands for the other.
    average: str = "all"
    # Whether In-W leaves a page where it was fetched to first. 3.2, which describes the algorithm, lets "all nodes, except the one where
    # a page is located" decide about it, and says nothing of a page that stays. "Fixed to the first node" is in section 4 alone.
    fixed: str = "no"
    # "Shared memory communication is very fine-grained (normally at word level)" (3.1): every access is a transfer, and counted.
    caches: str = "none"
    # Intervals that a page stays after a move. The text has no rest.
    cooldown: int = 0
    # Seconds per 10⁹ bytes moved, beside the copy. Not given: what the product assumes of Linux (AsymSched, 4.2).
    cost: float = 0.3
    # Remote over local latency. SIMT's authors say "one or two orders of magnitude": near the geometric middle of 10 to 100.
    ratio: int = 30
    # Compute time over the recording host's: the same rule as in all reproductions.
    factor: float = cores.factor(MACHINE)


CHOSEN = Choice()
# Latencies that every setting is run at: A2 asks for what the unknown ones give.
RATIOS = (10, 30, 100)
AVERAGE = "2 × average"  # accesses of an interval to a page, before the run: known from the interval and what is allocated
MOST = 4096  # pages: wider than any of the programs, so all pages of a node, the n of the text's formula

# Quantity: (field, values besides the default, where the range is from).
OPEN = {
    "interval": ("interval", (5_000, 80_000),
                 "accesses: from about three turns of each thread in the recording, to 16 decisions in the shortest run (LU)"),
    "half-life": ("half_life", (16, 4, 1), "intervals: never halved, as the text says nothing, to remembering the last two"),
    "minimum accesses": ("minimum", (2, 32, 128, AVERAGE), "none in the text; AutoNUMA asks for 2; about a hundred is what "
                         "counters in hardware had as trigger (Verghese et al., its reference 9); twice what an interval has for a "
                         "page on average, as the text calls the threshold constant"),
    "reading of the threshold": ("reading", ("all", "difference"),
                                 "the page's own average over remote nodes; a constant, twice the average over all pages, by which "
                                 "the largest exceeds that average; the difference from an average over all four nodes, the home's "
                                 "own being 0"),
    "window": ("window", (4, 16, 32, MOST), "pages: from one neighbour on each side, to all pages of the node (n in the formula)"),
    "weights": ("weight", ("uniform",), "the text says a closer page weighs more; uniform is the limit"),
    "In-W's average over": ("average", ("used",), "all remote pages, or those that the node has used so far (3.2). The product has the "
                            "first; for the second its threshold is multiplied by how many remote pages there are to one that is "
                            "used, counted over nodes and intervals of the recording"),
    "In-W's pages": ("fixed", ("yes",), "may be fetched again, or are fixed to the first node (4)"),
    "caches before the monitor": ("caches", ("monitor", "both"),
                                  "none; before the monitor; before the monitor and memory. The cache is the profile's `lines`: it holds "
                                  "a thread's last 1,024 pages, which is all of these programs, and is not coherent, so each thread "
                                  "fetches a line once. Coherent caches lie between"),
    "rest": ("cooldown", (4,), "intervals: none in the text; what the product does on real machines"),
    "cost of a move": ("cost", (0.0, 3.0), "s/GB: the copy alone, to ten times what AsymSched measured"),
    "latency ratio": ("ratio", (10, 100), "one or two orders of magnitude, as SIMT's authors say"),
    "core factor": ("factor", tuple(f for f in cores.plausible(MACHINE) if f != CHOSEN.factor), cores.SOURCE),
}
# What only times depend on, not which pages are moved.
OF_TIME = {"cost of a move", "latency ratio", "core factor"}

# max − average > 2 · average as multiples of what the policies take: over all four nodes, of which a home does not see
# its own, the average is three quarters of the remote nodes'; In-W's is over pages.
DIFFERENCE = {"out-u": 2.25, "out-w": 2.25, "in-w": 3.0}


def varied(name):
    """Value as text → the setting with that value alone varied; the default comes first."""
    field, values, _ = OPEN[name]
    chosen = getattr(CHOSEN, field)
    text = {MOST: "all"} if field == "window" else {}
    return {str(text.get(v, v)): replace(CHOSEN, **{field: v}) for v in (chosen, *values)}


# What reasons are tested with (notes.py), beside the ranges: no page moves twice.
ONCE = replace(CHOSEN, cooldown=1_000_000)


def policy_text(policy, choice, unused):
    """As `simulate` takes it: one of ARS's with its parameters, others as they are. `unused()`: remote pages to one that is used."""
    if not policy.startswith(("out-", "in-")):
        return policy
    threshold = DIFFERENCE.get(policy, 2.0) if choice.reading == "difference" else 2.0
    if policy == "in-w" and choice.average == "used":
        threshold *= unused()
    text = f"balance:{policy}:threshold={threshold:g}"
    if "-w" in policy:
        text += f":window={choice.window}:weight={choice.weight}"
    if policy in ("out-u", "out-w"):
        text += f":against={'all' if choice.reading == 'all' else 'page'}"
    if policy == "in-w":
        text += f":fixed={choice.fixed}"
    return text


def options(choice, pages):
    """Of `simulate`, for a program that has allocated this many shared pages."""
    least = round(2 * choice.interval / pages) if choice.minimum == AVERAGE else choice.minimum
    return {"half-life": choice.half_life, "minimum-samples": least, "cooldown": choice.cooldown,
            "migrate-budget": "none", "migration-cost": choice.cost, "core-factor": choice.factor,
            "traffic": "lines" if choice.caches == "both" else "accesses",
            "counted": "accesses" if choice.caches == "none" else "lines"}
