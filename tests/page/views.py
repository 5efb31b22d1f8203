"""Each view from a profile: its values are those of `--json`, its pictures those that somebody has looked at."""

import nodewise
import pictures
from browser import CARELESS, VIEWS, Watched
from checks import check

# Figures whose pictures are kept: what is made of counts alone, so that no clock is in them.
KEPT = {"solver": [("overview", "machine"), ("layout", "layout"), ("time", "film"), ("threads", "sharing"), ("threads", "placement"),
                   ("compare", "difference")],
        "moved": [("migrations", "runtime"), ("migrations", "show"), ("migrations", "location")]}
FEWEST = 100


def pointed(document, pointer):
    for token in pointer.split("/")[1:]:
        if document is None:
            return None
        key = token.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def agrees(report, pointer, value):
    """An empty value is one that the report says is not known."""
    found = pointed(report, pointer)
    if not value:
        return found is None
    return isinstance(found, int | float) and abs(found - float(value)) <= 1e-12 * abs(found)


def agreement(browser, address, profile, name):
    report = nodewise.report(profile)
    watched = Watched(browser, address).open()
    seen = set()
    for view in VIEWS:
        section = watched.view(view)
        check(f"{name}: {view} shows something", len(section.inner_text()) > 60, section.inner_text())
        careless = CARELESS.search(watched.text())
        check(f"{name}: {view} has no careless text", not careless, careless)
        wide = watched.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        check(f"{name}: {view} fits its window", wide <= 0, wide)
        values = [v for v in watched.values() if v[1] < 1]
        wrong = [v for v in values if not agrees(report, v[0], v[2]) or not v[3].strip()]
        check(f"{name}: the figures of {view} are the report's", not wrong, wrong[:5])
        seen |= {v[0] for v in values}
    check(f"{name}: many figures", len(seen) >= FEWEST, len(seen))
    exact = report["program"]["exact"]
    for policy in range(len(report["policies"])):
        shown = {p for p in seen if p.startswith(f"/policies/{policy}/local_")}
        expected = {f"/policies/{policy}/local_fraction" if exact else f"/policies/{policy}/local_range/0"}
        check(f"{name}: the local share of policy {policy} is shown, of samples by its bounds", shown == expected, shown)
    if address.startswith("http"):
        threads = watched.page.evaluate("() => fetch('p/0/threads.json').then(r => r.json())")
        before, first = threads["before"], report["policies"][0]
        same = abs(before["local_fraction"] - first["local_fraction"]) < 1e-12
        check(f"{name}: threads before are the overview's today", same and before["affinity"] == report["affinity"]["name"],
              (before["affinity"], before["local_fraction"], first))
    sentence = report["verdict"]["sentence"].replace("`", "")
    watched.view("overview")
    check(f"{name}: it opens with the verdict", sentence in watched.text().replace("`", ""), sentence)
    check(f"{name}: nothing went wrong", not watched.errors, watched.errors[:3])
    outside = [url for url in watched.asked if not url.startswith((address.split("#")[0], "data:", "blob:"))]
    check(f"{name}: nothing else was asked for", not outside, outside[:3])
    watched.close()


def pictures_of(browser, address, kind):
    for scheme in ("light", "dark"):
        watched = Watched(browser, address, color_scheme=scheme).open()
        for view, figure in KEPT[kind]:
            watched.view(view)
            shown = watched.steady(watched.page.locator(f"[data-figure={figure}] .body").first)
            like, how_far = pictures.like_golden(f"{kind}-{figure}-{scheme}", shown)
            check(f"{figure} of {kind} looks as it did, {scheme}", like, how_far)
        watched.close()
