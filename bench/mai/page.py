"""The page of MAI's figures."""

import plots
from findings import FEW, SAME
from recordings import FOLDER

from web import document, escape, figure, table, verdicts

TITLES = {"mg": "MG", "ictm": "ICTM", "ondes": "Ondes 3D"}
# As in the paper, its four policies; the rest is in the tables.
DRAWN = ["Linux", "Parallel-Init", "cyclic", "bind_block"]
NUMBERS = {"mg": 11, "ictm": 12, "ondes": 13}


def draw(data):
    for program, machines in data["programs"].items():
        for machine, by_threads in machines.items():
            for key in ("speedup", "efficiency"):
                series = {p: [by_threads[str(t)][p][key] for t in data["threads"]] for p in DRAWN}
                plots.grouped(FOLDER / f"{program}-{machine}-{key}.svg", [f"{t} threads" for t in data["threads"]],
                              series, "speed-up" if key == "speedup" else "efficiency", with_average=False)


def numbers(by_threads, threads):
    heads = ["policy"]
    for t in threads:
        heads += [f"{t}: speed-up", "efficiency", "local"]
    rows = []
    for policy in by_threads[str(threads[0])]:
        row = [policy]
        for t in threads:
            f = by_threads[str(t)][policy]
            row += [f"{f['speedup']:.2f}", f"{f['efficiency']:.2f}", f"{100 * f['local']:.0f} %"]
        rows.append(row)
    return table(heads, rows)


def cores_table(data):
    """Speed-ups at the most threads under other assumptions about the cores."""
    most = str(max(data["threads"]))
    rows = []
    for program, machines in data["programs"].items():
        for machine, by_threads in machines.items():
            found = {int(s): m[machine][most] for s, m in data["cores"][program].items()} | {data["slower"]: by_threads[most]}
            for slower, speedups in sorted(found.items()):
                rows.append([f"{TITLES[program]}, {data['machines'][machine]}", f"{slower}×",
                             *(f"{speedups[p]['speedup']:.2f}" for p in DRAWN)])
    return table(["program and machine", "cores", *DRAWN], rows)


def write(data, found, placed):
    sizes = ", ".join(f"{p} --size {s} --iterations {i}" for p, (s, i) in data["sizes"].items())
    parts = ["<p><strong>A quick run</strong>, of smaller programs: <code>make reproduce-mai</code> has the figures.</p>"]
    parts = (parts if data["quick"] else []) + [
        "<p>The figures of Ribeiro and Méhaut (INRIA RT-0359, 2008), section 4, with our programs: recorded with 16 "
        "threads, a slice a parallel region, and <strong>simulated</strong> on the paper's two machines. Times are "
        "predictions of the model (<code>docs/model.md</code>); speed-up is over the predicted time of one thread with its "
        f"memory beside it, efficiency speed-up by threads. Sizes: {escape(sizes)}. Cores are taken to compute "
        f"{data['slower']} times as long as those of the host that recorded; other assumptions are below. Linux is first touch with arrays "
        "initialised by the master; the others have the arrays initialised by all threads.</p>",
        f"<h2>The paper's findings</h2><p>Speed-ups that differ by less than {100 * SAME:.0f} % are taken as equal; the paper's "
        f"“a few %” as {100 * FEW:.0f} %.</p>", verdicts(found),
    ]
    for program, machines in data["programs"].items():
        parts.append(f"<h2>Figure {NUMBERS[program]}: {TITLES[program]}</h2>")
        for machine, by_threads in machines.items():
            name = data["machines"][machine]
            parts.append(f"<h3>{escape(name)} (<code>{machine}</code>), simulation</h3>")
            for key, text in (("speedup", "Speed-up"), ("efficiency", "Efficiency")):
                parts.append(figure(f"{program}-{machine}-{key}", f"{text} of {TITLES[program]} on {name}, predicted."))
            parts.append(numbers(by_threads, data["threads"]))
    parts += [f"<h2>Other cores</h2><p>Predicted speed-up with {max(data['threads'])} threads where the machine's cores compute so "
              "many times as long as those of the host that recorded.</p>", cores_table(data), "<h2>Laboratory</h2>",
              "<p>mg under each policy of mai.h on a virtual machine of four nodes: exact counts of accesses to its arrays, "
              "and what the policy's definition makes of the accesses in a recording.</p>",
              verdicts(placed)]
    return document("MAI's policies, on our programs", parts)
