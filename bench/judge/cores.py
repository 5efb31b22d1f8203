"""How much longer the cores of the papers' machines compute than those of the host that records.

One rule for all five reproductions: clock times work a cycle, the work by SPECint2000 per GHz (cores.csv has the sources). The
recording host's core is taken to do as much a cycle as Intel's Core of 2006, the newest core in that table. Newer cores do more,
so the factor's range reaches from 1 (as fast as the host's) to `NEWER` times the default. It multiplies computing only:
`nodewise simulate --core-factor`."""

import csv
import pathlib
import re

CORE_2006 = 1019  # SPECint2000 per GHz: 3,057 at 3 GHz
# Work a cycle of today's cores over the Core of 2006, at most: published single-thread ratings per GHz have grown by 2 to 2.5.
NEWER = 2.5
SOURCE = "clock × SPECint2000 per GHz (bench/judge/cores.csv); up to 2.5 times that, as the host's core is newer than the table"


def host_ghz():
    """The recording host's clock; Linux says MHz of each CPU as it is now."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = [float(mhz) for mhz in re.findall(r"^cpu MHz\s*: ([0-9.]+)", text, re.MULTILINE)]
    return max(found) / 1000 if found else 3.0


def read():
    with open(pathlib.Path(__file__).with_name("cores.csv"), encoding="utf-8") as file:
        return {row["machine"]: row for row in csv.DictReader(file)}


def factor(machine):
    """Of computing on a machine of the papers; at least 1."""
    row = read()[machine]
    return max(1.0, round(host_ghz() * CORE_2006 / (float(row["ghz"]) * float(row["specint2000_per_ghz"])), 2))


def plausible(machine):
    """The range to run over, coarsely: as fast as the host, by the table, and with a host whose core is the newest."""
    middle = factor(machine)
    return sorted({1.0, middle, round(NEWER * middle, 2)})
