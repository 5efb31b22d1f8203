"""Profiles at the edge: hostile names, hardly anything, cut short, one node, samples, very many nodes."""

import subprocess

import nodewise
from browser import CARELESS, VIEWS, Watched
from checks import check

CASES = ("hostile", "page", "truncated")


def all_of_them(browser, profiles):
    for kind in CASES:
        address, file = nodewise.in_a_file(profiles[kind])
        whole(browser, address, kind)
        if kind == "hostile":
            hostile(browser, address, file)
        if kind == "truncated":
            watched = Watched(browser, address).open()
            watched.view("overview")
            check("a profile cut short says so", "the recorder was killed" in watched.text())
            watched.close()
    one_node(browser, profiles["solver"])
    empty(profiles["empty"])


def whole(browser, address, name):
    watched = Watched(browser, address).open()
    for view in VIEWS:
        section = watched.view(view)
        check(f"{name}: {view} says something", len(section.inner_text()) > 20)
        careless = CARELESS.search(watched.text())
        check(f"{name}: {view} has no careless text", not careless, careless)
        if view == "layout":
            zoom(watched, name)
    check(f"{name}: nothing went wrong", not watched.errors, watched.errors[:3])
    watched.close()


def zoom(watched, name):
    """Down to one page, and past it."""
    watched.page.locator("[data-view=layout] canvas[tabindex]").first.focus()
    for _ in range(16):
        watched.page.keyboard.press("+")
    watched.settle()
    careless = CARELESS.search(watched.text())
    check(f"{name}: one page fills the window", not careless, careless)


def hostile(browser, address, file):
    watched = Watched(browser, address).open()
    for view in VIEWS:
        watched.view(view)
        check(f"hostile: {view} runs nothing", watched.page.title() != "owned" and not watched.page.locator("img").count(),
              watched.page.title())
    check("hostile: the name is shown as it is", "onerror=" in watched.text())
    text = file.read_text()
    check("hostile: nothing of a name is in the file as it stands", "<img" not in text and text.count("<script") == text.count("</script>"))
    watched.close()


def one_node(browser, profile):
    file = nodewise.FOLDER / "one-node.html"
    nodewise.output("report", profile, "--machine", nodewise.ROOT / "tests/page/one-node.toml", "--html", file, "--force")
    whole(browser, file.as_uri(), "one node")


def empty(profile):
    """There is nothing to show of it: that is one line, and no file."""
    file = nodewise.FOLDER / "empty.html"
    for command in (["report", profile, "--html", file], ["serve", profile]):
        done = subprocess.run([nodewise.NODEWISE, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=120, check=False)
        check(f"{command[0]} of nothing is one line and status 2", done.returncode == 2 and done.stderr.count("\n") == 1,
              (done.returncode, done.stderr))
    check("no page is made of nothing", not file.exists())
