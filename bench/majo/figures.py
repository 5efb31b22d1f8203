"""The paper's figures from our data: SVG files beside the page."""

import plots
from checks import gain, remote, uniform
from laboratory import PROFILED
from programs import COUNTS, EXCLUDED, MOVED, SWEEPS, TRANSFORMED
from recordings import FOLDER

CLASSES = ("non-shared", "node-shared", "uniformly shared")


def draw(data):
    names = [*TRANSFORMED, *EXCLUDED]
    plots.grouped(FOLDER / "figure2.svg", names, {"remote": [remote(data, n) for n in names]}, "remote accesses (%)", (0, 100),
                  with_average=False)
    plots.stacked(FOLDER / "figure3a.svg", SWEEPS, {c: [data["sharing"][n]["default"].get(c, 0) for n in SWEEPS] for c in CLASSES},
                  "pages (%)")
    plots.grouped(FOLDER / "figure8a.svg", MOVED, {form: [remote(data, n, form) for n in MOVED] for form in ("default", "redistribute")},
                  "remote accesses (%)", with_average=False)
    labels = ("default", PROFILED, "matched")
    plots.grouped(FOLDER / "figure15a.svg", TRANSFORMED, {f: [remote(data, n, f) for n in TRANSFORMED] for f in labels},
                  "remote accesses (%)", with_average=False)
    plots.grouped(FOLDER / "figure15b.svg", SWEEPS, {f: [uniform(data, n, f) for n in SWEEPS] for f in ("default", "matched")},
                  "uniformly shared pages (%)", with_average=False)
    plots.grouped(FOLDER / "figure16.svg", TRANSFORMED, {f"{t} threads": [gain(data, n, t) for n in TRANSFORMED] for t in COUNTS},
                  "default time over transformed time")
