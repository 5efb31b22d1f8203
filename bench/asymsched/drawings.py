"""The drawings and outputs in docs/asymmetry.md are those of the commands that it shows."""

import re
import shlex
import tempfile

from checks import Check
from nodewise import ROOT, topo

PAGE = ROOT / "docs/asymmetry.md"
IMAGES = ROOT / "docs/images"
MACHINE = ("--machine", "machine-a")
DRAWINGS = {"machine-a": (), "hops": ("--flows", "0>3,0>4,0>7"), "directions": ("--flows", "3>7,7>3"),
            "2-3-4": ("--flows", "2-3-4"), "2-6-7": ("--flows", "2-6-7")}
# A command alone in its block, then a block of output, with drawings between at most.
SHOWN = re.compile(r"```sh\nnodewise topo ([^\n]*)\n```\n(?:(?!```).)*?```\n(.*?)```\n", re.DOTALL)


def drawn(options):
    with tempfile.TemporaryDirectory() as folder:
        topo(*MACHINE, *options, "--svg", f"{folder}/a.svg")
        return open(f"{folder}/a.svg", encoding="utf-8").read()


def page():
    """As it is, and with every output renewed."""
    text = PAGE.read_text(encoding="utf-8")
    return text, SHOWN.sub(lambda m: m[0].replace(f"```\n{m[2]}```", f"```\n{topo(*shlex.split(m[1]))}```"), text)


def update():
    for name, options in DRAWINGS.items():
        (IMAGES / f"asymmetry-{name}.svg").write_text(drawn(options), encoding="utf-8")
    PAGE.write_text(page()[1], encoding="utf-8")


def part():
    old = [name for name, options in DRAWINGS.items()
           if (IMAGES / f"asymmetry-{name}.svg").read_text(encoding="utf-8") != drawn(options)]
    text, renewed = page()
    old += ["the page"] if text != renewed else []
    return "", [Check("asymmetry.md shows what its commands print and draw", "", ", ".join(old) + " differ" if old else "all of it",
                      not old, "`bench/reproduce-asymsched --update` renews it." if old else "")]
