"""Pictures as they should be, and how far others are from them."""

import io
import pathlib
import sys

import numpy
from PIL import Image

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
WRITE = "--write" in sys.argv
# Letters may be drawn by another version of the browser; what is seen may not differ.
FAR, SHARE = 48, 0.03


def difference(ours, theirs):
    """The share of pixels that are far off; 1 where even the sizes are."""
    if abs(ours.width - theirs.width) > 8 or abs(ours.height - theirs.height) > 24:
        return 1.0
    size = (min(ours.width, theirs.width), min(ours.height, theirs.height))
    a, b = (numpy.asarray(p.convert("RGB").crop((0, 0, *size)), dtype=int) for p in (ours, theirs))
    return float((numpy.abs(a - b).max(axis=2) > FAR).mean())


def like_golden(name, png):
    """Whether a screenshot is what it was when somebody looked at it; and how far it is."""
    file = GOLDEN / f"{name}.png"
    if WRITE:
        Image.open(io.BytesIO(png)).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(file, optimize=True)
    if not file.exists():
        return False, "there is no such picture"
    found = difference(Image.open(io.BytesIO(png)), Image.open(file))
    return found <= SHARE, f"{100 * found:.1f} % of the pixels"
