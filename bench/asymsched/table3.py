"""Table 3: best and worst pair of nodes on machines A and B."""

from checks import Check, percent
from nodewise import NODES, route

BEST, WORST = {"machine-a": 148, "machine-b": 149}, {"machine-a": 340, "machine-b": 277}

TEXT = """## Table 3: machine B, as a check of direction

Of machine B the paper gives the number of cores, two links that go both ways where machine A's go one way, and two times: 149 s
on the best pair, 277 s on the worst. `machine-b` has machine A's widths; that is assumed. From its best time the model of
Table 1 predicts {b:.0f} s on the worst pair ({b_error}); for machine A, from 148 s, {a:.0f} s ({a_error}). That B's spread is smaller than
A's it cannot say: both have pairs of 1,909 MB/s. The paper's reason is six cores a node instead of eight. 16 threads on two
such nodes are more than one a core; the paper does not say how they ran.

The two links change data's way from 7 to 2 and from 1 to 4: one hop each, {b72:.0f} MB/s instead of {a72:.0f}, and {b14:.0f} instead of
{a14:.0f}. The way over two wider links was the faster one for 7 to 2.
"""


def worst(name):
    widths = [route(m, r, name)["bandwidth_MBps"] for m in NODES for r in NODES if m != r]
    return BEST[name] * (1 + max(widths) / min(widths)) / 2


def part():
    a, b = worst("machine-a"), worst("machine-b")
    error = {"machine-a": a / WORST["machine-a"] - 1, "machine-b": b / WORST["machine-b"] - 1}

    def width(memory, reader, name):
        return route(memory, reader, name)["bandwidth_MBps"]
    text = TEXT.format(a=a, b=b, a_error=percent(error["machine-a"]), b_error=percent(error["machine-b"]),
                       a72=width(7, 2, "machine-a"), b72=width(7, 2, "machine-b"),
                       a14=width(1, 4, "machine-a"), b14=width(1, 4, "machine-b"))
    return text, [
        Check("Machine B's worst pair, from its best", "277 s", f"{b:.0f} s", abs(error["machine-b"]) < 0.15),
        Check("Machine B's pairs differ less than machine A's", "85 % against 133 %",
              f"{percent(b / 149 - 1)} against {percent(a / 148 - 1)}", b / 149 < a / 148 * 0.95,
              "B's widths are not published; with A's there is nothing that could make a difference but the cores.", expected=False),
    ]
