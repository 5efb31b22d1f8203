"""What is taken along: pictures that open, and figures that are the report's."""

import csv
import io
import json
import xml.etree.ElementTree as xml

import nodewise
from browser import VIEWS, Watched
from checks import check
from PIL import Image


def all_of_them(browser, address, profile):
    watched = Watched(browser, address).open()
    found = {}
    for view in VIEWS:
        watched.view(view)
        names = figures(watched)
        check(f"{view} has figures to take along", names, names)
        for name in names:
            picture(watched, name)
            drawing(watched, name)
            found[name] = table(watched, name)
    policies(found, nodewise.report(profile))
    check("exports: nothing went wrong", not watched.errors, watched.errors[:3])
    watched.close()


def figures(watched):
    """Those of the view, once no more come: some wait for tiles."""
    before, names = None, []
    while names != before or not names:
        watched.page.wait_for_timeout(400)
        before, names = names, watched.page.eval_on_selector_all("[data-figure]", "all => all.map(e => e.dataset.figure)")
    return names


def picture(watched, name):
    image = Image.open(io.BytesIO(watched.download(name, "PNG")))
    colours = image.convert("RGB").getcolors(1 << 22) or []
    check(f"{name} as PNG is a picture of something", image.width > 100 and image.height > 40 and len(colours) > 3,
          (image.size, len(colours)))


def drawing(watched, name):
    root = xml.fromstring(watched.download(name, "SVG"))
    check(f"{name} as SVG is one", root.tag.endswith("svg") and len(list(root.iter())) > 3, root.tag)
    outside = [v for e in root.iter() for k, v in e.attrib.items() if k.endswith("href") and not v.startswith(("data:image/png", "#"))]
    check(f"{name} as SVG stands alone", not outside, outside[:2])


def table(watched, name):
    rows = list(csv.reader(io.StringIO(watched.download(name, "CSV").decode("utf-8-sig"))))
    check(f"{name} as CSV has heads and rows of one length", len(rows) > 1 and len({len(r) for r in rows}) == 1,
          [len(r) for r in rows[:5]])
    return rows


def policies(found, report):
    """Somewhere there is a table of policies, exactly as the report has them."""
    for policy in report["policies"]:
        row = next((r for r in found.get("policies", []) if r[0] == policy["policy"]), [])
        check(f"{policy['policy']} is among the policies taken along", row and any(
            cell and is_number(cell) and float(cell) == policy["local_fraction"] for cell in row), json.dumps(row))


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
