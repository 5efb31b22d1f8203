// Copies a part of the page as SVG without style sheets: boxes, text, canvases, and SVG elements.

import { words } from "./text";

export interface Copy {
  text: string;
  width: number;
  height: number;
}

/** Properties that a drawing takes from style sheets. */
const DRAWN = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-opacity",
  "opacity",
  "paint-order",
  "stroke-linejoin",
  "vector-effect",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "dominant-baseline",
  "visibility",
];

const clear = (colour: string) => colour === "transparent" || /^rgba\(.*,\s*0\)$/.test(colour) || /\/ 0\)$/.test(colour);

let clips = 0;

/** An element as it is currently displayed, with its upper left corner at 0, 0. */
export function copied(root: Element): Copy {
  const { left, top, width, height } = root.getBoundingClientRect();
  const parts: string[] = [];
  walk(root, left, top, parts);
  return { text: parts.join(""), width: Math.ceil(width), height: Math.ceil(height) };
}

function walk(node: Node, x0: number, y0: number, out: string[]): void {
  if (node instanceof Text) return void out.push(words(node, x0, y0));
  if (!(node instanceof Element)) return;
  const style = getComputedStyle(node);
  if (style.display === "none" || style.visibility === "hidden" || node.matches(".unseen, .controls, [data-unexported]")) return;
  const box = node.getBoundingClientRect();
  const [x, y] = [box.left - x0, box.top - y0];
  if (node instanceof HTMLCanvasElement) return void out.push(canvas(node, x, y, box));
  if (node instanceof SVGSVGElement) return void out.push(drawing(node, x, y, box));
  if (node instanceof HTMLSelectElement || node instanceof HTMLInputElement) return;
  out.push(background(style, x, y, box));
  const clipped = style.overflowX !== "visible" && node.scrollWidth > node.clientWidth + 1;
  if (clipped) {
    const id = `clip-${clips++}`;
    out.push(
      `<clipPath id="${id}"><rect x="${x}" y="${y}" width="${box.width}" height="${box.height}"/></clipPath><g clip-path="url(#${id})">`,
    );
  }
  for (const child of node.childNodes) walk(child, x0, y0, out);
  if (clipped) out.push("</g>");
}

function background(style: CSSStyleDeclaration, x: number, y: number, box: DOMRect): string {
  let text = "";
  if (!clear(style.backgroundColor)) {
    text = `<rect x="${x}" y="${y}" width="${box.width}" height="${box.height}" rx="${parseFloat(style.borderTopLeftRadius) || 0}" fill="${style.backgroundColor}"/>`;
  }
  const below = parseFloat(style.borderBottomWidth);
  if (below > 0 && style.borderBottomStyle !== "none" && !clear(style.borderBottomColor)) {
    text += `<rect x="${x}" y="${y + box.height - below}" width="${box.width}" height="${below}" fill="${style.borderBottomColor}"/>`;
  }
  return text;
}

const canvas = (node: HTMLCanvasElement, x: number, y: number, box: DOMRect) =>
  node.width && node.height
    ? `<image x="${x}" y="${y}" width="${box.width}" height="${box.height}" preserveAspectRatio="none" href="${node.toDataURL("image/png")}"/>`
    : "";

function drawing(node: SVGSVGElement, x: number, y: number, box: DOMRect): string {
  const copy = node.cloneNode(true) as SVGSVGElement;
  const [from, to] = [
    [node, ...node.querySelectorAll("*")],
    [copy, ...copy.querySelectorAll("*")],
  ];
  from.forEach((element, i) => plain(element, to[i]!));
  for (const unwanted of copy.querySelectorAll("[data-unexported]")) unwanted.remove();
  for (const [name, value] of Object.entries({ x, y, width: box.width, height: box.height })) copy.setAttribute(name, String(value));
  return new XMLSerializer().serializeToString(copy);
}

function plain(from: Element, to: Element): void {
  const style = getComputedStyle(from);
  if (style.display === "none") to.setAttribute("display", "none");
  for (const name of DRAWN) {
    const value = style.getPropertyValue(name);
    if (value) to.setAttribute(name, value);
  }
  for (const { name } of [...to.attributes]) {
    if (
      name === "class" ||
      name === "style" ||
      name === "tabindex" ||
      name === "role" ||
      name.startsWith("aria-") ||
      name.startsWith("data-")
    ) {
      to.removeAttribute(name);
    }
  }
}
