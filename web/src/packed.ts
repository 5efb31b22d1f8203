// Columns of numbers behind one line of JSON that says which: how tiles and other bulky figures travel.

export type Kind = "u8" | "u16" | "u32" | "f32";
export type Column = Uint8Array | Uint16Array | Uint32Array | Float32Array;

/** What was packed: the facts of the first line, and its columns by name. */
export interface Packed {
  /** Everything the header says beside `columns`. */
  facts: Record<string, unknown>;
  columns: Map<string, Column>;
}

const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };

/** Reads what `nodewise_page::packed` wrote: a line of JSON padded with spaces to a multiple of 4, then
 *  little-endian columns, each padded likewise. Throws on anything else. */
export function unpack(bytes: Uint8Array): Packed {
  const end = bytes.indexOf(10);
  if (end < 0) throw new Error("packed data without a header");
  const { columns, ...facts } = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))) as {
    columns: [string, Kind, number][];
  };
  const found = new Map<string, Column>();
  let at = end + 1;
  for (const [name, kind, length] of columns) {
    const Items = ARRAYS[kind];
    const size = length * Items.BYTES_PER_ELEMENT;
    if (at + size > bytes.length) throw new Error(`packed data ends within ${name}`);
    // A copy is aligned, wherever the bytes lie.
    found.set(name, new Items(bytes.slice(at, at + size).buffer));
    at += (size + 3) & ~3;
  }
  return { facts, columns: found };
}
