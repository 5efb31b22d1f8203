"""Debian's Chromium, and pages in it that are watched for anything they should not do."""

import contextlib
import re

from playwright.sync_api import sync_playwright

# Without these Chromium asks the network on its own.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--font-render-hinting=none", "--force-color-profile=srgb"]
VIEWS = ["overview", "layout", "time", "migrations", "threads", "compare"]
SIZE = {"width": 1400, "height": 900}
# How long one waits for what must come at last, in ms: other suites may have the CPUs meanwhile.
PATIENCE = 120_000
# What careless code shows where there is no figure.
CARELESS = re.compile(r"\b(NaN|undefined|Infinity|\[object)\b")


@contextlib.contextmanager
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        yield browser
        browser.close()


class Watched:
    """A page, with what went wrong in it and what it asked for."""

    def __init__(self, browser, address, **options):
        self.context = browser.new_context(viewport=SIZE, reduced_motion="reduce", accept_downloads=True, **options)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.address, self.errors, self.asked = address, [], []
        self.page.on("pageerror", lambda e: self.errors.append(f"error: {e}"))
        self.page.on("console", lambda m: m.type in ("error", "warning") and self.errors.append(f"{m.type}: {m.text}"))
        self.page.on("request", lambda r: self.asked.append(r.url))

    def open(self, state=""):
        """Another state of the same page is a click on a link, not a reload."""
        self.page.goto(f"{self.address}#{state}")
        return self

    def reopen(self, state=""):
        self.page.goto("about:blank")
        return self.open(state)

    def view(self, name, state=""):
        self.open(f"view={name}{state}")
        self.page.wait_for_selector(f"[data-view={name}]")
        self.settle()
        return self.page.locator(f"[data-view={name}]")

    def settle(self):
        """Until nothing is being fetched, read or drawn any more."""
        self.page.wait_for_load_state()
        self.page.wait_for_function("() => ![...document.querySelectorAll('[role=status]')].some(e => e.textContent.startsWith('Reading'))"
                                    " && !document.querySelector('canvas:not([data-drawn])')")
        self.page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def steady(self, shown):
        """Its picture, once it does not change any more: finer tiles have come."""
        before = None
        for _ in range(20):
            now = shown.screenshot(animations="disabled")
            if now == before:
                break
            before = now
            self.page.wait_for_timeout(250)
        return now

    def text(self):
        return self.page.locator("body").inner_text()

    def values(self):
        """(pointer, profile, value, text) of every figure that is shown."""
        return self.page.eval_on_selector_all(
            "data[data-pointer]",
            "all => all.map(e => [e.dataset.pointer, Number(e.dataset.profile ?? -1), e.getAttribute('value'), e.textContent])")

    def download(self, figure, kind):
        # Chromium loses the eleventh of a second.
        self.page.wait_for_timeout(110)
        with self.page.expect_download() as started:
            self.page.locator(f"[data-figure={figure}] [data-export={kind}]").click()
        return open(started.value.path(), "rb").read()

    def close(self):
        self.context.close()
