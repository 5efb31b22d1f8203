"""A real session in the laboratory, on a kernel with two nodes: it is looked at while pages move."""

import base64
import io
import os
import shutil
import subprocess
import tarfile

import nodewise
from browser import Watched
from checks import check

LAB = ["lab", "--machine", "nehalem-2s", "--cpus", "2", "--memory", "512M", "--no-counters", "--bind", "none",
       "--huge-pages", "never", "--threads", "2", "--time-limit", "20m"]
PROGRAM = nodewise.ROOT / "build/workloads/sor"
SIZE = ["--size", "512", "--iterations", "100000"]
MOVED = "() => Number(document.querySelector('[data-pointer=\"/moves/ours\"]')?.value ?? 0)"


def unpacked(line, folder):
    """What the guest sent takes its place: files first, the manifest that names them last."""
    fresh = folder.with_name("arriving")
    shutil.rmtree(fresh, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(line))) as sent:
        sent.extractall(fresh)
    session = fresh / "session"
    files = sorted((f for f in session.rglob("*") if f.is_file()), key=lambda f: f.name == "manifest.json")
    for file in files:
        to = folder / file.relative_to(session)
        to.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, to)


def balanced(browser):
    guest = nodewise.ROOT / "tests/page/guest"
    lab = subprocess.Popen([nodewise.NODEWISE, *LAB, "--with", PROGRAM, "--", guest, PROGRAM, *SIZE], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)
    folder, seen, said, shown = nodewise.FOLDER / "laboratory", [], {}, None
    try:
        for line in lab.stdout:
            if line.startswith("@") and not line.startswith("@@"):
                said.update([line[1:].split(" ", 1)])
            if not line.startswith("@@ "):
                continue
            unpacked(line[3:], folder)
            shown = shown or Shown(browser, folder)
            seen.append((shown.moved(), "ended" not in said))
        shown.ended(seen)
        check("the program is ended from outside, and balance says so", said.get("ended", "").strip() == "143", said)
        served_there(said)
    finally:
        lab.kill()
        if shown:
            shown.close()


def served_there(said):
    """What `balance --page` serves, asked by hand in the guest."""
    session, events, server = (said.get(key, "") for key in ("session", "events", "server"))
    check("balance --page serves its session", '"live":true' in session.replace(" ", ""), session)
    check("and tells of each interval", "event: interval" in events and "event: session" in events, events[:300])
    check("the server may do nothing that needs a privilege", server.split()[:6] == [
        "CapPrm:", "0" * 16, "CapEff:", "0" * 16, "NoNewPrivs:", "1"], server)


class Shown:
    """The session's page, open all the time."""

    def __init__(self, browser, folder):
        self.folder, self.serving = folder, nodewise.served(folder)
        self.watched = Watched(browser, self.serving.__enter__()).open("view=migrations")
        self.watched.page.evaluate("() => { window.still = true }")

    def moved(self):
        """Memory pages that the page says have moved by now."""
        return self.watched.page.evaluate(MOVED)

    def ended(self, seen):
        moves = nodewise.report(self.folder)["moves"]
        self.watched.page.wait_for_function(
            "ours => [...document.querySelectorAll('[data-pointer=\"/moves/ours\"]')].some(e => e.value === ours)",
            arg=str(moves["ours"]))
        check("the page knows every page that moved in the laboratory", moves["ours"] > 0, moves)
        check("moves were seen while the program ran", any(moved and running for moved, running in seen), seen)
        check("in a page that had shown fewer", seen[0][0] < moves["ours"], seen)
        check("without being loaded anew", self.watched.page.evaluate("() => window.still"))
        check("laboratory: nothing went wrong", not self.watched.errors, self.watched.errors[:3])

    def close(self):
        self.watched.close()
        self.serving.__exit__(None, None, None)
