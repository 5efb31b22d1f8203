"""How much longer the cores of the papers' machines compute than those of the host that records.

One rule for all five reproductions: clock times work a cycle, the work by SPECint2000 per GHz (cores.csv has the figures and names the
documents). The recording host's core is taken to do as much a cycle as Intel's Core of 2006, the newest core in
document 1. Newer cores do more, so the factor's range reaches from 1 (as fast as the host's) to `NEWER` times the default, and further by
`slower` where a core's figures rest on less than a rating of its own. It multiplies computing only: `nodewise simulate --core-factor`.

The documents, by the numbers in cores.csv:

1. AnandTech, article 2022, page 4, "The Official SPEC Numbers" (2006): SPECint2000 3,057 of the Xeon 5160 at 3,000 MHz, 1,837 of the
   Opteron at 2,800, 1,502 of the Itanium 2 at 1,666.
2. TechReport, "Intel's Xeon 5600 processors" (review 19196, 2010): Nehalem was "the biggest step forward", Westmere's cores do the same
   a clock.
3. AnandTech, article 6430 (5 November 2012): the fastest Opteron 6300 has 2.8 GHz; what Piledriver changes of Bulldozer.
4. Computerwoche, "AMD Opteron 6262 HE und 6276" (5 December 2011): a 16-core Bulldozer at a similar clock has the integer performance of a
   12-core Opteron 6100.
5. Tom's Hardware, "Phenom vs. Athlon Core Scaling Compared" (review 1759, winter of 2007): core against core, Phenom is up to 20 % faster.

Where a figure has no document the file says NO SOURCE, and the range is widened by 4/3, once for each such figure: the largest step
that these documents have from a core to the slower one that came after it (4)."""

import csv
import functools
import os
import pathlib
import re

CORE_2006 = 1019  # SPECint2000 per GHz: 3,057 at 3 GHz
# Work a cycle of today's cores over the Core of 2006, at most. No document with a date was found for it: assumed, and wide.
NEWER = 3.0
SOURCE = (f"Middle: the ratio by clock and SPECint2000 (bench/judge/cores.csv). From 1 (as fast as the host) to {NEWER:g} times the "
          "middle, more where a figure has no source")


# A run has one clock for all its papers: bench/reproduce reads it once.
GIVEN = "REPRODUCE_HOST_GHZ"


@functools.cache
def host_ghz():
    """The recording host's clock; Linux says MHz of each CPU as it is now, so it is read once a run."""
    if given := os.environ.get(GIVEN):
        return float(given)
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = [float(mhz) for mhz in re.findall(r"^cpu MHz\s*: ([0-9.]+)", text, re.MULTILINE)]
    return round(max(found) / 1000, 3) if found else 3.0


def read():
    with open(pathlib.Path(__file__).with_name("cores.csv"), encoding="utf-8") as file:
        return {row["machine"]: row for row in csv.DictReader(file)}


def factor(machine):
    """Of computing on a machine of the papers; at least 1."""
    row = read()[machine]
    return max(1.0, round(host_ghz() * CORE_2006 / (float(row["ghz"]) * float(row["specint2000_per_ghz"])), 2))


def plausible(machine):
    """The range to run over, coarsely: as fast as the host, by the table, and with a host whose core is the newest and a core that is as
    slow as its sources allow."""
    middle = factor(machine)
    return sorted({1.0, middle, round(NEWER * float(read()[machine]["slower"]) * middle, 2)})
