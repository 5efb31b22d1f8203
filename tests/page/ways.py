"""Ways around the page: keys, theme, links, two profiles."""

import nodewise
from browser import VIEWS, Watched
from checks import check
from views import agrees


def current(watched):
    return watched.page.locator("[data-view]").get_attribute("data-view")


def keys(browser, address):
    watched = Watched(browser, address).open()
    watched.view("overview")
    for number, view in enumerate(VIEWS, 1):
        watched.page.keyboard.press(str(number))
        watched.page.wait_for_selector(f"[data-view={view}]")
        check(f"key {number} opens {view}", current(watched) == view)
    watched.page.keyboard.press("?")
    dialog = watched.page.get_by_role("dialog")
    dialog.wait_for()
    check("? lists the keys", "Overview" in dialog.inner_text(), dialog.inner_text())
    watched.page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    check("Escape closes it", True)
    layout(watched)
    reachable(watched)
    check("keys: nothing went wrong", not watched.errors, watched.errors[:3])
    watched.close()


def layout(watched):
    """A cursor goes through the cells, says where it is, and zooms."""
    watched.view("layout")
    canvas = watched.page.locator("[data-view=layout] canvas[tabindex]").first
    canvas.focus()
    live = watched.page.locator("[data-view=layout] [aria-live]").first
    said = [live.inner_text()]
    for _ in range(3):
        watched.page.keyboard.press("ArrowRight")
        watched.page.wait_for_function("before => document.querySelector('[data-view=layout] [aria-live]').innerText !== before",
                                       arg=said[-1])
        said.append(live.inner_text())
    check("an arrow key moves the cursor, and it is said where to", len(set(said)) == 4, said)
    whole = watched.page.url
    watched.page.keyboard.press("+")
    watched.page.wait_for_url(lambda url: url != whole)
    check("+ zooms, and the address knows", "from=" in watched.page.url, watched.page.url)
    watched.page.keyboard.press("Escape")
    watched.page.wait_for_url(lambda url: "from=" not in url)
    check("Escape shows everything again", True)


def reachable(watched):
    """Every button and link can be reached, is named, and shows that it has the focus."""
    for view in VIEWS:
        watched.view(view)
        nameless = watched.page.evaluate("""() => [...document.querySelectorAll('button, a[href], select, input, [tabindex="0"]')]
            .filter(e => e.checkVisibility() && !(e.ariaLabel || e.getAttribute('aria-labelledby') || e.innerText?.trim()
                || e.labels?.length
                || e.title)).map(e => e.outerHTML.slice(0, 120))""")
        check(f"whatever can be pressed in {view} has a name", not nameless, nameless[:3])
        watched.page.evaluate("() => document.activeElement.blur()")
        watched.page.keyboard.press("Tab")
        watched.page.keyboard.press("Tab")
        shown = watched.page.evaluate("""() => { const s = getComputedStyle(document.activeElement);
            return document.activeElement !== document.body && (s.outlineStyle !== 'none' || s.boxShadow !== 'none') }""")
        check(f"the focus is seen in {view}", shown)


# The least contrast of a text with what is behind it (WCAG 2.2, 1.4.3), and of large or bold ones.
CONTRAST = """() => {
  const rgb = text => { const p = (text.match(/[\\d.]+/g) || []).map(Number); return text.startsWith('color(srgb')
      ? [p[0] * 255, p[1] * 255, p[2] * 255, p[3] ?? 1] : [p[0], p[1], p[2], p[3] ?? 1] };
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 0.95) return c }
      return rgb(getComputedStyle(document.documentElement).backgroundColor) };
  const poor = [];
  for (const e of document.querySelectorAll('main *, header *, footer *')) {
    if (e.closest('svg, canvas, [disabled], .unseen') || !e.checkVisibility({opacityProperty: true})) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const s = getComputedStyle(e), a = light(rgb(s.color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), large = parseFloat(s.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) poor.push([e.tagName, e.className, e.textContent.slice(0, 30), ratio.toFixed(2)]);
  }
  return poor;
}"""


def themes(browser, address):
    grounds = {}
    for scheme in ("light", "dark"):
        watched = Watched(browser, address, color_scheme=scheme).open()
        for view in VIEWS:
            watched.view(view)
            poor = watched.page.evaluate(CONTRAST)
            check(f"texts can be read in {view}, {scheme}", not poor, poor[:5])
        ground = "() => getComputedStyle(document.body).backgroundColor"
        grounds[scheme] = watched.page.evaluate(ground)
        watched.page.keyboard.press("t")
        toggled = watched.page.evaluate(ground)
        check(f"t changes the theme from {scheme}", toggled != grounds[scheme], toggled)
        watched.reopen("view=overview").page.wait_for_selector("[data-view=overview]")
        check(f"the choice lasts, {scheme}", watched.page.evaluate(ground) == toggled)
        watched.close()
    check("dark is another ground than light", len(set(grounds.values())) == 2, grounds)


def links(browser, address):
    state = "view=layout&policy=interleave&colour=exclusivity&from=512&to=1024"
    watched = Watched(browser, address).open(state)
    watched.page.wait_for_selector("[data-view=layout]")
    watched.settle()
    canvas = watched.page.locator("[data-view=layout] canvas[tabindex]").first
    drawn = watched.steady(canvas)
    check("a link opens its view", current(watched) == "layout")
    watched.reopen(state).page.wait_for_selector("[data-view=layout]")
    watched.settle()
    check("and restores it", watched.steady(canvas) == drawn)
    watched.page.keyboard.press("1")
    watched.page.wait_for_selector("[data-view=overview]")
    watched.page.go_back()
    watched.page.wait_for_selector("[data-view=layout]")
    check("back goes back", "from=512" in watched.page.url, watched.page.url)
    for nonsense in ("view=nowhere", "view=layout&from=-5&to=99999999999", "view=layout&from=x&to=", "view=layout&object=999", "profile=17",
                     "view=layout&policy=nothing&colour=loud", "view=time&t0=9&t1=1&frame=1e9", "%E0%A4%A", "view=__proto__"):
        watched.reopen(nonsense).page.wait_for_selector("[data-view]")
        watched.settle()
        check(f"a wrong link shows a page: {nonsense}", len(watched.text()) > 200)
    check("links: nothing went wrong", not watched.errors, watched.errors[:3])
    watched.close()


def compared(browser, address, profiles):
    """Two profiles: the figures of each are its own report's."""
    reports = [nodewise.report(profiles[kind]) for kind in ("solver", "moved")]
    watched = Watched(browser, address).open()
    watched.view("compare")
    values = [v for v in watched.values() if v[1] >= 0]
    wrong = [v for v in values if not agrees(reports[int(v[1])], v[0], v[2])]
    check("figures of both profiles are theirs", len({v[1] for v in values}) == 2 and not wrong, wrong[:5])
    watched.reopen("view=overview&profile=1").page.wait_for_selector("[data-view=overview]")
    watched.settle()
    values = watched.values()
    wrong = [v for v in values if not agrees(reports[1], v[0], v[2])]
    check("the second profile has a page of its own", len(values) > 20 and not wrong, wrong[:5])
    watched.close()
