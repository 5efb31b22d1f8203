"""The pictures of docs/page.md and the README: real programs, recorded now, on the page. What is recorded stays in build/tour."""

import base64
import io
import os
import pathlib
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/page"))

from browser import Watched, chromium  # noqa: E402
from PIL import Image  # noqa: E402

NODEWISE, PROGRAMS, RECORDED = ROOT / "target/release/nodewise", ROOT / "build/workloads", ROOT / "build/workloads-recorded"
FOLDER, IMAGES = ROOT / "build/tour", ROOT / "docs/images"
MACHINE, THREADS = "epyc-2s-nps4", 16
LAB = ["lab", "--machine", "nehalem-2s", "--cpus", "2", "--memory", "512M", "--no-counters", "--bind", "none", "--huge-pages", "never",
       "--threads", "2", "--time-limit", "300s"]
BOUND = ["--env", "OMP_PROC_BIND=close", "--env", "OMP_PLACES=cores"]


def record(name, program, *arguments, **environment):
    """A teaching program with sixteen threads, every tenth of a second a slice."""
    folder = FOLDER / name
    subprocess.run([NODEWISE, "record", "--force", "--threads", str(THREADS), "--slice", "100ms", "-o", folder, "--", RECORDED / program,
                    *arguments], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": str(THREADS), **environment})
    return folder


def balanced(name, *options):
    """A session in the laboratory: tests/page/guest sends it out, the last one is whole."""
    done = subprocess.run([NODEWISE, *LAB, *options, "--with", PROGRAMS / "sor", "--", ROOT / "tests/page/guest", PROGRAMS / "sor",
                           "--size", "512", "--iterations", "1500"], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    sent = [line[3:] for line in done.stdout.splitlines() if line.startswith("@@ ")][-1]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(sent))) as files:
        files.extractall(FOLDER / name)
    return FOLDER / name / "session"


def page(name, profile, *options):
    """Asked for from among the profiles, so that what the page says to run next is short."""
    here = [o.relative_to(FOLDER) if isinstance(o, pathlib.Path) else o for o in (profile, *options)]
    subprocess.run([NODEWISE, "report", *here, "--html", f"{name}.html", "--force"], check=True, cwd=FOLDER)
    return (FOLDER / f"{name}.html").as_uri()


def picture(browser, name, address, state, height=900, scheme="light", act=None):
    watched = Watched(browser, address, color_scheme=scheme)
    watched.page.set_viewport_size({"width": 1400, "height": height})
    watched.open(state).page.wait_for_selector("[data-view]")
    watched.settle()
    if act:
        act(watched.page)
    png = watched.steady(watched.page)
    Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(IMAGES / f"page-{name}.png", optimize=True)
    watched.close()


def point(page):
    """At a page that two sweeps fight for."""
    box = page.locator("[data-view=layout] canvas[tabindex]").bounding_box()
    page.mouse.move(box["x"] + 0.31 * box["width"], box["y"] + 0.16 * box["height"])


def main():
    here = ["--machine", MACHINE]
    sor = page("sor", record("sor", "sor", "--init", "master"), *here)
    bt = record("bt", "bt")
    # The library deals its loops for eight nodes though the host has one.
    both = page("bt", bt, *here, "--against", record("bt-matched", "bt", "--form", "matched", NODEWISE_PRETEND="8x2"))
    shift = page("shift", record("shift", "shift"), *here, "--affinity", "scatter")
    lu = page("lu", record("lu", "dense_lu"), *here, "--affinity", "scatter", "--policy", "locality")
    moved = page("moved", balanced("restless"), "--machine", "nehalem-2s", "--against", balanced("bound", *BOUND))
    with chromium() as browser:
        picture(browser, "overview", sor, "view=overview", 1080)
        picture(browser, "layout", both, "view=layout&object=0", 960, act=point)
        picture(browser, "layout-dark", both, "view=layout&object=0&from=0&to=1400", 960, "dark", act=point)
        picture(browser, "time", shift, "view=time", 1180)
        picture(browser, "migrations", moved, "view=migrations", 1300)
        picture(browser, "threads", lu, "view=threads", 1240)
        picture(browser, "compare", both, "view=compare", 960)


if __name__ == "__main__":
    main()
