"""What changes while one looks."""

import os
import subprocess
import time

import nodewise
from browser import Watched
from checks import check

PATIENCE = 30000


def rewritten(browser):
    """Another profile in the same place: the page follows without being loaded anew."""
    folder = nodewise.synthetic("solver", to="changing")
    with nodewise.served(folder) as address:
        watched = Watched(browser, address).open()
        watched.view("overview")
        watched.page.evaluate("() => { window.still = true }")
        before = watched.text()
        nodewise.synthetic("solver", 2048, 8, to="changing")
        watched.page.wait_for_function("before => document.body.innerText !== before", arg=before, timeout=PATIENCE)
        report = nodewise.report(folder)
        watched.page.wait_for_function(
            "pages => [...document.querySelectorAll('[data-pointer=\"/totals/pages\"]')].some(e => e.value === pages)",
            arg=str(report["totals"]["pages"]), timeout=PATIENCE)
        check("the page follows its profile without being loaded anew", watched.page.evaluate("() => window.still"))
        check("live: nothing went wrong", not watched.errors, watched.errors[:3])
        watched.close()


def interrupted(browser):
    """A lost connection is said, and gone when it is back."""
    folder = nodewise.synthetic("solver", to="changing")
    with nodewise.served(folder) as address:
        watched = Watched(browser, address).open()
        watched.view("overview")
        watched.context.set_offline(True)
        lost = watched.page.get_by_text("onnection lost")
        lost.wait_for(timeout=PATIENCE)
        watched.context.set_offline(False)
        lost.wait_for(state="hidden", timeout=PATIENCE)
        nodewise.synthetic("solver", 2048, 8, to="changing")
        watched.page.wait_for_function(
            "pages => [...document.querySelectorAll('[data-pointer=\"/totals/pages\"]')].some(e => e.value === pages)",
            arg=str(nodewise.report(folder)["totals"]["pages"]), timeout=PATIENCE)
        check("a page that lost its connection goes on when it is back", True)
        watched.close()


def recorded(browser):
    """A recording in progress: slices grow while one looks, and the finished one is the same page."""
    folder = nodewise.FOLDER / "recording"
    program = nodewise.ROOT / "build/workloads/sor"
    recorder = subprocess.Popen(
        [nodewise.NODEWISE, "record", "--via", "faults", "--force", "--slice", "500ms", "-o", folder, "--", program, "--size", "1024",
         "--iterations", "100000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "4"})
    try:
        with nodewise.served(folder) as address:
            watched = Watched(browser, address).open("view=time")
            slices = "least => fetch('p/0/report.json').then(r => r.ok && r.json()).then(r => r && r.slices.length >= least)"
            for least in (1, 4):
                watched.page.wait_for_function(slices, arg=least, timeout=60000)
            check("a recording is seen to grow", True)
            watched.view("time")
            recorder.terminate()
            recorder.wait(30)
            time.sleep(1)
            watched.page.wait_for_function("() => fetch('session.json').then(r => r.json()).then(s => !s.live)", timeout=60000)
            check("and to end", True)
            watched.close()
    finally:
        recorder.kill()
