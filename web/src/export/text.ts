// The lines of a text as laid out by the browser.

import { asText } from "./escape";

/** Ascent over height, by font. */
const ascents = new Map<string, number>();

function ascent(font: string): number {
  let share = ascents.get(font);
  if (share === undefined) {
    const context = document.createElement("canvas").getContext("2d")!;
    context.font = font;
    const { fontBoundingBoxAscent: above, fontBoundingBoxDescent: below } = context.measureText("x");
    share = above / (above + below) || 0.8;
    ascents.set(font, share);
  }
  return share;
}

interface Line {
  text: string;
  box: DOMRect;
}

/** Splits a text node at the line breaks of the browser's layout. */
function lines(node: Text): Line[] {
  const found: Line[] = [];
  const range = document.createRange();
  for (const match of node.data.matchAll(/\S+\s*/g)) {
    range.setStart(node, match.index);
    range.setEnd(node, match.index + match[0].trimEnd().length);
    const box = range.getBoundingClientRect();
    if (box.width === 0) continue;
    const last = found[found.length - 1];
    if (last && Math.abs(last.box.top - box.top) < box.height / 2) last.text += ` ${match[0].trimEnd()}`;
    else found.push({ text: match[0].trimEnd(), box });
  }
  return found;
}

export function words(node: Text, x0: number, y0: number): string {
  const parent = node.parentElement;
  if (!parent || !node.data.trim()) return "";
  const style = getComputedStyle(parent);
  const font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const look = `font-family="${asText(style.fontFamily)}" font-size="${style.fontSize}" font-weight="${style.fontWeight}" fill="${style.color}"`;
  return lines(node)
    .map(({ text, box }) => {
      const y = box.top - y0 + box.height * ascent(font);
      return `<text x="${(box.left - x0).toFixed(1)}" y="${y.toFixed(1)}" ${look}>${asText(text)}</text>`;
    })
    .join("");
}
