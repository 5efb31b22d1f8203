"""What sections 1 and 2 say about machine A's links, asked of the model."""

from checks import Check
from nodewise import NODES, machine, path, route

TEXT = """## What the text says about links

`nodewise topo --machine machine-a` shows all of it.

{lines}
"""


def users(*ends):
    """The nodes whose traffic crosses a link, either way."""
    wanted = [i for i, link in enumerate(machine()["links"]) if {*link["from"], *link["to"]} == set(ends)]
    return sorted({n for r in machine()["routes"] if set(r["links"]) & set(wanted) for n in (r["memory"], r["reader"])})


def checks():
    write, read = route(7, 3)["bandwidth_MBps"] / 1000, route(3, 7)["bandwidth_MBps"] / 1000
    shared, alone = users(2, 3), users(3, 4)
    ends = {(link["from"][0], link["to"][0]) for link in machine()["links"]}
    one_way = sorted(e for e in ends if e[::-1] not in ends)
    wide = [r for r in machine()["routes"] if machine()["links"][r["links"][0]]["class"] == "16bit" and len(r["links"]) == 1]
    best = max(r["bandwidth_MBps"] for r in machine()["routes"])
    return [
        Check("Node 7 writes to node 3 at 4 GB/s and reads at 2 GB/s", "section 1",
              f"{write:.2f} GB/s over {path(7, 3)}, {read:.2f} over {path(3, 7)}", round(write) == 4 and round(read) == 2),
        Check("The link between 4 and 3 is used by these two alone", "section 1", ", ".join(map(str, alone)), alone == [3, 4]),
        Check("The link between 2 and 3 is shared by 0, 1, 2, 3, 6, 7", "section 1", ", ".join(map(str, shared)),
              shared == [0, 1, 2, 3, 6, 7]),
        Check("Some links are one-way", "7 to 3, for instance", ", ".join(f"{a} to {b}" for a, b in one_way), (7, 3) in one_way),
        Check("With two nodes, those on a 16-bit link are best", "section 2",
              f"{len(wide)} of {len(NODES) * 7} ordered pairs, all at {best / 1000:.2f} GB/s",
              all(r["bandwidth_MBps"] == best for r in wide)
              and sum(r["bandwidth_MBps"] == best for r in machine()["routes"]) == len(wide)),
    ]


def part():
    found = checks()
    return TEXT.format(lines="\n".join(f"- {c.claim}: {c.ours}." for c in found)), found
