// The transfer format of tiles and other large figures: a line of JSON that describes columns of numbers, then the
// columns.

export type Kind = "u8" | "u16" | "u32" | "f32";
export type Column = Uint8Array | Uint16Array | Uint32Array | Float32Array;

/** Unpacked data: the fields of the JSON line, and the columns by name. */
export interface Packed {
  /** All fields of the JSON line but `columns`. */
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
    // Copied, because typed arrays need aligned data.
    found.set(name, new Items(bytes.slice(at, at + size).buffer));
    at += (size + 3) & ~3;
  }
  return { facts, columns: found };
}
