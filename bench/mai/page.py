"""The page of MAI's figures."""

import plots
from recordings import BY_PARTS, BY_ROWS, FOLDER, NAMES, SIZES

from web import document, escape, figure, table, verdicts

TITLES = {"mg": "MG", "ictm": "ICTM", "ondes": "Ondes 3D"}
# As in the paper's text; the rest is in the tables.
DRAWN = ["Linux", "Parallel-Init", "cyclic", "bind_all", BY_ROWS, BY_PARTS]
NUMBERS = {"mg": 11, "ictm": 12, "ondes": 13}


def speedup(by_threads, threads, policy):
    return by_threads["1"]["Sequential"]["seconds"]["typical"] / by_threads[threads][policy]["seconds"]["typical"]


def counts(by_threads):
    return [t for t in by_threads if t != "1"]


def draw(data):
    for program, each in data.items():
        for machine, by_threads in each[0]["threads"].items():
            threads = counts(by_threads)
            for key in ("speedup", "efficiency"):
                series = {p: [speedup(by_threads, t, p) / (1 if key == "speedup" else int(t)) for t in threads] for p in DRAWN}
                plots.grouped(FOLDER / f"{program}-{machine}-{key}.svg", [f"{t} threads" for t in threads], series,
                              "speed-up" if key == "speedup" else "efficiency", with_average=False)


def numbers(by_threads):
    threads = counts(by_threads)

    def cells(threads, policy):
        return f"{speedup(by_threads, threads, policy):.2f}", f"{100 * by_threads[threads][policy]['local']:.0f} %"

    rows = [[policy, *(cell for t in threads for cell in cells(t, policy))] for policy in by_threads[threads[0]]]
    return table(["policy", *(head for t in threads for head in (f"{t}: speed-up", "local"))], rows)


def write(size, data, found, checked):
    sizes = ", ".join(f"{p} --size {n} --iterations {i}" for p, (n, i) in SIZES[size].items())
    parts = [
        "<p>Ribeiro and Méhaut (INRIA RT-0359, 2008), section 4, with our programs: recorded with 16 threads, a slice a parallel "
        "region, and <strong>simulated</strong> on the paper's two machines; "
        f"size: {size} ({escape(sizes)}). Times are predictions of the model "
        ""
        "(<code>docs/model.md</code>), of what computes, without first touch and verification. Linux is first touch with arrays "
        "initialised by one thread; the others have them initialised by all.</p>",
        "<h2>The paper's findings</h2>", verdicts(found),
    ]
    for program, each in data.items():
        parts.append(f"<h2>Figure {NUMBERS[program]}: {TITLES[program]}</h2><p>Of the first recording; speed-up is over one thread with "
                     "its memory beside it, efficiency speed-up by threads.</p>")
        for machine, by_threads in each[0]["threads"].items():
            parts.append(f"<h3>{escape(NAMES[machine])} (<code>{machine}</code>), simulation</h3>")
            for key, text in (("speedup", "Speed-up"), ("efficiency", "Efficiency")):
                parts.append(figure(f"{program}-{machine}-{key}", f"{text} of {TITLES[program]} on {NAMES[machine]}, predicted."))
            parts.append(numbers(by_threads))
    rows = [[what, ours, "yes" if holds else "NO"] for what, ours, holds in checked]
    parts += ["<h2>Inputs</h2><p>Checks of our own, not judged: mg under each policy of mai.h on a virtual machine of four nodes "
              "(<code>nodewise lab --pages</code>), page by page.</p>", table(["", "found", "as it should be"], rows)]
    return document("MAI's policies, on our programs", parts)
