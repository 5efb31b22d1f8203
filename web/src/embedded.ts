// A source of documents in the page's own file: base64 of gzip of a line of JSON, which gives the offset and the length
// of each document, followed by the documents.

import { Missing, type Source } from "./source";

const DAMAGED = "This file is damaged: its figures cannot be read. Make it anew with `nodewise report --html`.";

async function unzipped(text: string): Promise<Uint8Array> {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

/** Reads the element that contains the documents. */
export async function embedded(element: Element): Promise<Source> {
  let all: Uint8Array;
  let names: Record<string, [number, number]>;
  let start: number;
  try {
    all = await unzipped(element.textContent ?? "");
    start = all.indexOf(10) + 1;
    ({ names } = JSON.parse(new TextDecoder().decode(all.subarray(0, start))) as { names: typeof names });
  } catch {
    throw new Missing(DAMAGED);
  }
  // Frees the memory of the text.
  element.remove();
  return {
    live: false,
    async bytes(name) {
      const place = Object.hasOwn(names, name) ? names[name] : undefined;
      if (!place) throw new Missing(`This file has no ${name}.`);
      return all.subarray(start + place[0], start + place[0] + place[1]);
    },
    watch: () => () => undefined,
  };
}
