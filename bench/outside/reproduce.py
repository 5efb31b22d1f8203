"""Predicts points.csv and prints each point with its error; --reuse keeps the recordings. Writes build/reproduce/outside.json."""

import json
import math
import statistics
import sys
import time

from commands import ROOT
from judge.page import OUTSIDE_ROWS
from judge.verdict import commit
from points import points
from programs import program
from recordings import build, predict
from trials import TRIALS

# As simulate extends the range of a speed-up: by a tenth of the logarithm of the gain.
GAIN = 0.1


def ratio(here, there):
    """Typical run time over the reference's, and that at both ends of the ranges. Both ends are those of the same assumption."""
    return [a / b for a, b in zip(here, there)]


def widened(ratios):
    """The range that covers them."""
    margin = math.exp(GAIN * abs(math.log(ratios[0])))
    return [min(ratios) / margin, max(ratios) * margin]


def by_power(typical, measured):
    """Slow-downs raised to the power that makes the first point exact; as they are, where it is predicted to be none."""
    log = math.log(typical[0])
    power = math.log(measured) / log if abs(log) > 0.01 else 1
    return power, lambda ratios: ratios[0] ** power


def by_position(ratios, measured):
    """The place between both ends of its range where the first point lies, on the range's edge if it is outside."""
    low, high = math.log(ratios[1]), math.log(ratios[2])
    place = min(max((math.log(measured) - low) / (high - low), 0), 1) if high != low else 0.5
    return place, lambda ratios: ratios[1] ** (1 - place) * ratios[2] ** place


def error(predicted, measured):
    return predicted / measured - 1


def summary(errors):
    """Median and 90th percentile of the error's size, in per cent."""
    sizes = sorted(abs(e) for e in errors)
    return {"points": len(sizes), "median": 100 * statistics.median(sizes),
            "p90": 100 * statistics.quantiles(sizes, n=10, method="inclusive")[8]}


def calibrate(rows, how):
    """Calibrated predictions by id, and each project's constant. The first point of a project, in the file's order, is what it
    is calibrated on: that point itself no longer counts."""
    constants, apply, found = {}, {}, {}
    for row in rows:
        project = row["project"]
        if project not in apply:
            constants[project], apply[project] = how(row["ratios"], row["measured"])
        else:
            found[row["id"]] = apply[project](row["ratios"])
    return found, constants


def tried(trial, reuse, rows):
    """The errors of a trial's points, as they are and with what it changes."""
    before = {row["id"]: row["error"] for row in rows}
    mine = [point for point in points() if trial.of(point.program)]
    after = [ratio(predict(p, p.placement, reuse, trial), predict(p, p.reference, reuse, trial))[0] / p.measured - 1 for p in mine]
    return {"what": trial.what, "before": summary(before[p.id] for p in mine), "after": summary(after)}


def main():
    started, reuse = time.monotonic(), "--reuse" in sys.argv
    build()
    rows = []
    for point in points():
        ratios = ratio(predict(point, point.placement, reuse), predict(point, point.reference, reuse))
        rows.append({"id": point.id, "project": point.project, "machine": point.machine, "program": point.program,
                     "threads": point.threads, "size": program(point.program, point.threads).size, "measured": point.measured,
                     "predicted": ratios[0], "ratios": ratios, "range": widened(ratios), "error": error(ratios[0], point.measured)})
    ways = {way.__name__: calibrate(rows, way) for way in (by_power, by_position)}
    print(f"{'point':<38} measured predicted     range           error   by power    by position")
    for row in rows:
        line = f"{row['id']:<38} {row['measured']:8.3f} {row['predicted']:9.3f}  {row['range'][0]:6.3f} – {row['range'][1]:6.3f}"
        line += f" {100 * row['error']:+9.1f} %"
        for way, (found, _) in ways.items():
            if row["id"] in found:
                row[way] = found[row["id"]]
                line += f" {100 * error(row[way], row['measured']):+9.1f} %"
        print(line)
    report = {"error": summary(row["error"] for row in rows),
              "error_without_first": summary(row["error"] for row in rows if "by_power" in row)}
    for way, (found, constants) in ways.items():
        report[way] = {**summary(error(row[way], row["measured"]) for row in rows if row["id"] in found), "constants": constants}
    inside = sum(row["range"][0] <= row["measured"] <= row["range"][1] for row in rows)
    # Where both differ from none by more than measurements do.
    clear = [row for row in rows if abs(math.log(row["measured"])) > 0.05 and abs(math.log(row["predicted"])) > 0.01]
    direction = sum((row["measured"] > 1) == (row["predicted"] > 1) for row in clear)
    projects = {p: summary(row["error"] for row in rows if row["project"] == p) for p in ways["by_power"][1]}
    print()
    for key, found in [*((name, report[name]) for name in OUTSIDE_ROWS), *projects.items()]:
        name = f"{OUTSIDE_ROWS.get(key, key)}, {found['points']}"
        print(f"{name:<45} median {found['median']:5.1f} %, 90th percentile {found['p90']:5.1f} %")
    print(f"measured within the predicted range: {inside} of {len(rows)}; the faster placement is named: {direction} of {len(clear)}")
    trials = [tried(trial, reuse, rows) for trial in TRIALS]
    for one in trials:
        print(f"{one['what']}, {one['before']['points']} points: median {one['before']['median']:.1f} → {one['after']['median']:.1f} %")
    file = ROOT / "build/reproduce/outside.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"commit": commit(), "points": rows, **report, "inside_range": inside, "direction": [direction, len(clear)],
                                "projects": projects, "trials": trials, "seconds": time.monotonic() - started}) + "\n")


main()
