"""The drawings, outputs and figures in docs/asymmetry.md are those of the commands that it shows."""

import re
import shlex
import tempfile
from itertools import combinations, permutations

from recordings import ROOT
from topology import NODES, hops, together, topo

PAGE = ROOT / "docs/asymmetry.md"
IMAGES = ROOT / "docs/images"
MACHINE = ("--machine", "machine-a")
DRAWINGS = {"machine-a": (), "hops": ("--flows", "0>3,0>4,0>7"), "directions": ("--flows", "3>7,7>3"),
            "2-3-4": ("--flows", "2-3-4"), "2-6-7": ("--flows", "2-6-7")}
# A command alone in its block, then a block of output, with drawings between at most.
OUTPUTS = 4
SHOWN = re.compile(r"```sh\nnodewise topo ([^\n]*)\n```\n(?:(?!```).)*?```\n(.*?)```\n", re.DOTALL)


def drawn(options):
    with tempfile.TemporaryDirectory() as folder:
        topo(*MACHINE, *options, "--svg", f"{folder}/a.svg")
        return open(f"{folder}/a.svg", encoding="utf-8").read()


def page():
    """As it is, and with every output renewed."""
    text = PAGE.read_text(encoding="utf-8")
    return text, SHOWN.sub(lambda m: m[0].replace(f"```\n{m[2]}```", f"```\n{topo(*shlex.split(m[1]))}```"), text)


def prose():
    """What the page says in words about sets of three nodes."""
    def rate(nodes):
        return together("-".join(map(str, nodes))) / 1000
    sets = sorted(combinations(NODES, 3), key=lambda s: -rate(s))
    direct = [s for s in sets if all(hops(a, b) == 1 for a, b in permutations(s, 2))]
    best, second, worst = sets[0], sets[1], sets[-1]
    numbers = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    return [f"Of {len(sets)} sets of three nodes, {numbers[len(direct)]} have a link between every pair",
            f"--flows {'-'.join(map(str, direct[0]))}\n", f"{rate(direct[0]):.2f} GB/s in all. The best set of all {len(sets)}",
            f"--flows {'-'.join(map(str, best))}\n", f"{rate(best):.2f} GB/s: 2 reads",
            f"{{{', '.join(map(str, second))}}}, where 1 and 2 are two hops apart both ways, comes second",
            f"The worst sets have {rate(worst):.1f} GB/s: choosing nodes is worth a factor of {rate(best) / rate(worst):.1f} here"]


def update():
    for name, options in DRAWINGS.items():
        (IMAGES / f"asymmetry-{name}.svg").write_text(drawn(options), encoding="utf-8")
    PAGE.write_text(page()[1], encoding="utf-8")


def as_shown():
    """(what differs, whether nothing does)."""
    old = [name for name, options in DRAWINGS.items()
           if (IMAGES / f"asymmetry-{name}.svg").read_text(encoding="utf-8") != drawn(options)]
    text, renewed = page()
    old += ["the page"] if text != renewed else []
    old += [f"{OUTPUTS} outputs"] if len(SHOWN.findall(text)) != OUTPUTS else []
    old += [repr(said) for said in prose() if said not in text]
    return ", ".join(old) + " differ" if old else "all of it", not old
