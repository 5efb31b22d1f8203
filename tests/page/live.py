"""What changes while one looks."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

import checks
import nodewise
from browser import Watched
from checks import check

SWITCH = pathlib.Path("/proc/sys/kernel/numa_balancing")


def rewritten(browser):
    """Another profile in the same place: the page follows without being loaded anew."""
    folder = nodewise.synthetic("solver", to="changing")
    with nodewise.served(folder) as address:
        watched = Watched(browser, address).open()
        watched.view("overview")
        watched.page.evaluate("() => { window.still = true }")
        before = watched.text()
        nodewise.synthetic("solver", 2048, 8, to="changing")
        watched.page.wait_for_function("before => document.body.innerText !== before", arg=before)
        report = nodewise.report(folder)
        watched.page.wait_for_function(
            "pages => [...document.querySelectorAll('[data-pointer=\"/totals/pages\"]')].some(e => e.value === pages)",
            arg=str(report["totals"]["pages"]))
        check("the page follows its profile without being loaded anew", watched.page.evaluate("() => window.still"))
        check("live: nothing went wrong", not watched.errors, watched.errors[:3])
        watched.close()


def interrupted(browser):
    """A lost connection is said, and gone when it is back."""
    folder = nodewise.synthetic("solver", to="changing")
    with nodewise.served(folder, "--session") as address:  # of a profile that is whole nothing would be missed
        _, _, port, token, _ = re.split("[:/]+", address)
        proxy = Proxy(int(port))
        watched = Watched(browser, f"http://{proxy.address}/{token}/").open()
        watched.view("overview")
        proxy.cut()
        lost = watched.page.get_by_text("onnection lost").first
        lost.wait_for()
        proxy.open = True
        lost.wait_for(state="hidden")
        nodewise.synthetic("solver", 2048, 8, to="changing")
        watched.page.wait_for_function(
            "pages => [...document.querySelectorAll('[data-pointer=\"/totals/pages\"]')].some(e => e.value === pages)",
            arg=str(nodewise.report(folder)["totals"]["pages"]))
        check("a page that lost its connection goes on when it is back", True)
        watched.close()


class Proxy:
    """Stands between the page and its server, and can be cut."""

    def __init__(self, port):
        self.listener, self.port, self.pairs = socket.create_server(("127.0.0.1", 0)), port, []
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.open = True
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            if not self.open:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.port))
            self.pairs.append((near, far))
            names = (self.address.encode(), f"127.0.0.1:{self.port}".encode())
            threading.Thread(target=self.pump, args=(near, far, names), daemon=True).start()
            threading.Thread(target=self.pump, args=(far, near, None), daemon=True).start()

    @staticmethod
    def pump(here, there, names):
        """The server is asked under its own name."""
        with contextlib.suppress(OSError):
            while data := here.recv(65536):
                there.sendall(data.replace(*names) if names else data)
            there.shutdown(socket.SHUT_WR)

    def cut(self):
        self.open = False
        for each in (s for pair in self.pairs for s in pair):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def recorded(browser):
    """A recording in progress: slices grow while one looks, and the finished one is the same page."""
    folder = nodewise.FOLDER / "recording"
    shutil.rmtree(folder, ignore_errors=True)
    before = SWITCH.read_text().strip() if SWITCH.exists() else None
    try:
        SWITCH.write_text("1")
    except OSError as error:
        checks.skip(f"this kernel does not sample: {error}")
        return
    try:
        grows(browser, folder)
    finally:
        SWITCH.write_text(before)


def grows(browser, folder):
    program = nodewise.ROOT / "build/workloads/sor"
    recorder = subprocess.Popen(
        [nodewise.NODEWISE, "record", "--via", "faults", "--force", "--slice", "500ms", "-o", folder, "--", program, "--size", "1024",
         "--iterations", "100000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "4"})
    try:
        while not (folder / "manifest.json").exists() and recorder.poll() is None:
            time.sleep(0.1)
        with nodewise.served(folder) as address:
            watched = Watched(browser, address).open("view=time")
            slices = "least => fetch('p/0/report.json').then(r => r.ok && r.json()).then(r => r && r.slices.length >= least)"
            for least in (1, 4):
                watched.page.wait_for_function(slices, arg=least)
            check("a recording is seen to grow", True)
            watched.view("time")
            recorder.terminate()
            recorder.wait(30)
            time.sleep(1)
            watched.page.wait_for_function("() => fetch('session.json').then(r => r.json()).then(s => !s.live)")
            check("and to end", True)
            watched.close()
    finally:
        recorder.kill()
