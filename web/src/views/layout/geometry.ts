// Positions of the parts of the picture, in CSS pixels.

export interface Zone {
  y: number;
  h: number;
}

export interface Geometry {
  width: number;
  height: number;
  /** Left edge and width of all parts whose x axis is the address space. */
  x: number;
  w: number;
  names: Zone;
  overview: Zone;
  funnel: Zone;
  bands: Zone;
  observed: Zone;
  today: Zone;
  chosen: Zone;
  threads: Zone;
  axis: Zone;
  /** Height of a thread's row. */
  row: number;
}

/** Margins on the left, for names, and on the right, of all parts whose x axis is the address space. */
export const GUTTER = 104;
export const RIGHT = 10;

export function geometry(width: number, rows: number): Geometry {
  const row = Math.max(2, Math.min(28, Math.floor(400 / Math.max(1, rows))));
  let y = 0;
  const zone = (h: number, gap: number): Zone => {
    const made = { y, h };
    y += h + gap;
    return made;
  };
  const zones = {
    names: zone(17, 2),
    overview: zone(26, 0),
    funnel: zone(18, 0),
    bands: zone(22, 3),
    observed: zone(54, 5),
    today: zone(34, 5),
    chosen: zone(34, 9),
    threads: zone(row * rows, 0),
    axis: zone(20, 0),
  };
  return { width, height: y, x: GUTTER, w: Math.max(40, width - GUTTER - RIGHT), row, ...zones };
}

export const inside = ({ y: top, h }: Zone, y: number) => y >= top && y < top + h;
