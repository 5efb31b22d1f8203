"""What was read from the paper and is read back, and what our own page shows: listed apart, not judged.

`(text, what there is, whether it is so)` each."""

import drawings
import wirings
from table1 import MEASURED
from topology import machine, path, route


def printed_bandwidths():
    import csv

    from table1 import TABLE
    with open(TABLE, encoding="utf-8") as file:
        return {(int(r["inferred_master"]), int(r["inferred_other"])): float(r["bw_to_master_MBps"]) for r in csv.DictReader(file)}


def statements():
    write, read = route(7, 3)["bandwidth_MBps"] / 1000, route(3, 7)["bandwidth_MBps"] / 1000
    links = {(link["from"][0], link["to"][0]) for link in machine()["links"]}
    via = {(r["memory"], r["reader"]): r["via"][0] for r in machine()["routes"] if r["via"]}
    shared, alone = (sorted(wirings.users(links, via, frozenset(ends))) for ends in ((2, 3), (3, 4)))
    one_way = sorted(end for end in links if end[::-1] not in links)
    widths = [abs(route(*pair)["bandwidth_MBps"] / printed - 1) for pair, printed in printed_bandwidths().items()]
    return [
        ("the model has Table 1's bandwidths", f"off by {100 * max(widths):.1f} % at most in {len(MEASURED)} rows", max(widths) < 0.011),
        ("node 7 writes to node 3 at 4 GB/s and reads at 2 GB/s (section 1)",
         f"{write:.2f} GB/s over {path(7, 3)}, {read:.2f} over {path(3, 7)}", round(write) == 4 and round(read) == 2),
        ("the link between 4 and 3 is used by these two alone (section 1)", ", ".join(map(str, alone)), alone == [3, 4]),
        ("the link between 2 and 3 is shared by 0, 1, 2, 3, 6, 7 (section 1)", ", ".join(map(str, shared)), shared == [0, 1, 2, 3, 6, 7]),
        ("some links are one-way, 7 to 3 for instance (section 1)", ", ".join(f"{a} to {b}" for a, b in one_way), (7, 3) in one_way),
    ]


def all_inputs():
    return [*statements(), ("docs/asymmetry.md shows what its commands print and draw", *drawings.as_shown())]
