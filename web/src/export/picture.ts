// A figure of the page as a separate picture, with its title above and its origin below.

import { copied } from "./copy";
import { asText } from "./escape";
import { variable } from "../theme";

export interface Picture {
  text: string;
  width: number;
  height: number;
}

const MARGIN = 16;
const TITLE = 30;
const FOOT = 24;

export function svg(element: Element, words: { title: string; caption: string }): Picture {
  const { text, width, height } = copied(element);
  const [w, h] = [width + 2 * MARGIN, height + TITLE + FOOT + 2 * MARGIN];
  const font = `font-family="${asText(getComputedStyle(document.body).fontFamily)}"`;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">`,
    `<title>${asText(words.title)}</title>`,
    `<rect width="${w}" height="${h}" fill="${variable("--card")}"/>`,
    `<text x="${MARGIN}" y="${MARGIN + 14}" ${font} font-size="15" font-weight="600" fill="${variable("--ink")}">${asText(words.title)}</text>`,
    `<g transform="translate(${MARGIN} ${MARGIN + TITLE})">${text}</g>`,
    `<text x="${MARGIN}" y="${h - MARGIN}" ${font} font-size="11" fill="${variable("--muted")}">${asText(words.caption)}</text>`,
    "</svg>",
  ];
  return { text: lines.join("\n"), width: w, height: h };
}

/** The picture as PNG at twice its size, for screens of high resolution. */
export async function png({ text, width, height }: Picture): Promise<Blob> {
  const image = new Image();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    const scale = Math.min(2, 16_000 / Math.max(width, height));
    canvas.width = Math.ceil(width * scale);
    canvas.height = Math.ceil(height * scale);
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (!blob) throw new Error("the browser could not make the picture");
    return blob;
  } finally {
    URL.revokeObjectURL(address);
  }
}
