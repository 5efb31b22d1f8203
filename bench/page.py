"""Figures of the page, section `page` of bench/run: how soon it shows something, what an interaction costs the browser, what
serving takes, how large files are. Prints Markdown, leaves build/bench-page.json."""

import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/page"))

import nodewise  # noqa: E402
from browser import Watched, chromium  # noqa: E402

PAGES, THREADS = 10**7, 64
# An entry of the histogram is 24 bytes, a page's number, object and offset 20: the profile decoded.
ENTRY, PAGE, SHARERS = 24, 20, 4
OPENED = 5
# Seconds between two interactions: what one causes is over before the next.
PAUSE = 0.15


def first_picture(browser, address, view):
    """Seconds from opening the address to a drawn canvas or graph, each time in a fresh context: nothing is cached."""
    drawn = {"layout": "[data-view=layout] canvas[data-drawn]", "overview": "[data-figure=machine] svg, [data-figure=machine] canvas"}
    taken = []
    for _ in range(OPENED):
        watched = Watched(browser, address)
        start = time.perf_counter()
        watched.open(f"view={view}")
        watched.page.wait_for_selector(drawn[view])
        taken.append(time.perf_counter() - start)
        watched.close()
    return statistics.median(taken)


def zoom(page, box, step):
    if step == 0:
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, -240 if step % 20 < 14 else 480)


def pan(page, box, step):
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if step == 0:
        page.mouse.move(*middle)
        page.mouse.down()
    page.mouse.move(middle[0] + 8 * (step % 30) - 120, middle[1])


def hover(page, box, step):
    page.mouse.move(box["x"] + 20 + (step * 37) % (box["width"] - 40), box["y"] + box["height"] / 2)


def interactions(browser, address, act, view="layout", steps=60):
    """Milliseconds of script, layout and paint on the page's main thread, by Chromium's own trace, for each of many
    interactions: the CPU time of all its tasks from one to the next, and how long they took by the clock."""
    watched = Watched(browser, address)
    watched.open(f"view={view}")
    watched.settle()
    canvas = watched.page.locator(f"[data-view={view}] canvas[tabindex]").first
    box = canvas.bounding_box()
    if act is pan:
        for step in range(12):
            zoom(watched.page, box, step)
    watched.settle()
    browser.start_tracing(page=watched.page, categories=["disabled-by-default-devtools.timeline", "devtools.timeline", "blink.user_timing"])
    for step in range(steps):
        watched.page.evaluate("() => performance.mark('step')")
        act(watched.page, box, step)
        time.sleep(PAUSE)
    trace = json.loads(browser.stop_tracing())
    watched.close()
    return work_between_marks(trace["traceEvents"])


def work_between_marks(events):
    marks = [e for e in events if e.get("name") == "step" and "blink.user_timing" in e.get("cat", "")]
    main = {(e["pid"], e["tid"]) for e in marks}
    tasks = [e for e in events if e["name"] == "RunTask" and e.get("ph") == "X" and (e["pid"], e["tid"]) in main]
    at = sorted(e["ts"] for e in marks)
    return [[sum(t.get(kind, 0) for t in tasks if a <= t["ts"] < b) / 1000 for a, b in zip(at, at[1:])] for kind in ("tdur", "dur")]


def memory(process):
    """Resident and highest resident MiB."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return [int(line.split()[1]) / 1024 for key in ("VmRSS", "VmHWM") for line in status.splitlines() if line.startswith(key)]


def server_of(folder):
    """The process that serves it."""
    found = subprocess.run(["pgrep", "-f", f"serve {folder}"], capture_output=True, text=True, check=True)
    return int(found.stdout.split()[0])


def served(browser, results):
    folder = nodewise.synthetic("large", PAGES, THREADS, to="bench")
    start = time.perf_counter()
    with nodewise.served(folder) as address:
        results["ready"] = time.perf_counter() - start
        for view in ("overview", "layout"):
            results[f"first picture, {view}"] = first_picture(browser, address, view)
        for act in (zoom, pan, hover):
            work, clock = interactions(browser, address, act)
            results[act.__name__] = {"median": statistics.median(work), "largest": max(work), "clock": statistics.median(clock)}
        resident, highest = memory(server_of(folder))
    decoded = PAGES * (PAGE + SHARERS * ENTRY) / 2**20
    results["memory"] = {"decoded": decoded, "resident": resident, "highest": highest}


def files(results):
    for kind in ("solver", "large"):
        _, file = nodewise.in_a_file(nodewise.synthetic(kind, 10**5, THREADS, to=f"bench-{kind}"))
        results[f"file, {kind}"] = file.stat().st_size / 1e6
    bundle = [(ROOT / "build/web" / name).read_bytes() for name in ("page.js", "page.css")]
    results["bundle"] = sum(len(gzip.compress(b, 9)) for b in bundle) / 1000


def main():
    results = {}
    files(results)
    with chromium() as browser:
        served(browser, results)
    m = results["memory"]
    print(f"## The page: {PAGES:.0e} pages × {THREADS} threads, each page touched by {SHARERS}\n")
    print(f"Served {results['ready']:.0f} s after the command. First picture after opening, median of {OPENED}: overview "
          f"{results['first picture, overview']:.2f} s, layout {results['first picture, layout']:.2f} s.\n")
    print("Meant to be: first picture 2 s, an interaction 16 ms, memory 1.5, a file 5 MB, script and style 400 kB.\n")
    print("| interaction | CPU ms on the main thread, median | largest | by the clock, median |\n| --- | ---: | ---: | ---: |")
    for act in (zoom, pan, hover):
        print("|", act.__name__, *(f"| {results[act.__name__][k]:.1f}" for k in ("median", "largest", "clock")), "|")
    print(f"\nServer: {m['resident']:.0f} MiB resident, {m['resident'] / m['decoded']:.2f} of the decoded profile's {m['decoded']:.0f}; "
          f"{m['highest'] / m['decoded']:.2f} at most, while it was read.\n")
    print(f"One file for 10⁵ pages × {THREADS} threads: {results['file, solver']:.2f} MB (solver), {results['file, large']:.2f} MB "
          f"(four threads a page). Script and style, compressed: {results['bundle']:.0f} kB.\n")
    (ROOT / "build/bench-page.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
