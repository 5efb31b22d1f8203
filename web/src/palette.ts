// Colours as numbers, for canvases; css/colours.css has the same values. Nodes have the colours of Okabe and Ito, local
// accesses are blue and remote ones orange.

export type Rgb = readonly [number, number, number];

export interface Palette {
  dark: boolean;
  ground: Rgb;
  card: Rgb;
  ink: Rgb;
  muted: Rgb;
  line: Rgb;
  /** Background colour of a page's home node, beneath the accesses. */
  home: Rgb;
  local: Rgb;
  remote: Rgb;
  /** Pages that several nodes use. */
  spread: Rgb;
  /** Sharing classes, in the strip's order. */
  classes: readonly Rgb[];
  node(index: number): Rgb;
  /** Colour of a quantity: 0 is close to the background colour, 1 contrasts most. */
  quantity(share: number): Rgb;
  /** Colour of a local fraction: all accesses remote at 0, all local at 1. */
  locality(share: number): Rgb;
}

export const rgb = (hex: string): Rgb => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb;
export const css = ([r, g, b]: Rgb, alpha = 1) =>
  alpha < 1
    ? `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)} / ${alpha})`
    : `#${[r, g, b].map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
export const mix = (a: Rgb, b: Rgb, share: number): Rgb => [
  a[0] + (b[0] - a[0]) * share,
  a[1] + (b[1] - a[1]) * share,
  a[2] + (b[2] - a[2]) * share,
];
/** Colour of text on a background colour: dark or white, whichever has more contrast. */
export function readable(colour: Rgb): string {
  const [r, g, b] = colour.map((part) => (part / 255) ** 2.2) as unknown as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19 ? "#15191f" : "#ffffff";
}
/** The colour as an opaque pixel of image data, for little-endian machines. */
export const pixel = ([r, g, b]: Rgb) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

const NODES = {
  light: ["#0072b2", "#e09400", "#009e73", "#cc6ba0", "#56b4e9", "#cf5300", "#f0e442", "#3c4350"].map(rgb),
  dark: ["#1d7fc4", "#e69f00", "#0aa57b", "#d284b0", "#6cc3f5", "#dd6310", "#f0e442", "#dfe4ea"].map(rgb),
};
const CLASSES = {
  light: ["#a3abb6", "#0072b2", "#009e73", "#d55e00"].map(rgb),
  dark: ["#6c7682", "#3a94d8", "#12b485", "#ee7733"].map(rgb),
};
/** Scales from little to much: on white, from pale to dark; on black, viridis. */
const PALE = ["#f6f3d5", "#e2ecb6", "#badfb1", "#88cdb3", "#57b5bd", "#3697bd", "#2c76b0", "#2b539b", "#2a347a", "#1d1b50"].map(rgb);
const VIRIDIS = [
  "#440154",
  "#482475",
  "#414487",
  "#355f8d",
  "#2a788e",
  "#21918c",
  "#22a884",
  "#44bf70",
  "#7ad151",
  "#bddf26",
  "#fde725",
].map(rgb);

/** Interpolates between colours; `share` is the position, 0 to 1. */
function along(stops: readonly Rgb[], share: number): Rgb {
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const first = Math.min(stops.length - 2, Math.floor(at));
  return mix(stops[first]!, stops[first + 1]!, at - first);
}

/** Beyond eight nodes the eight hues are repeated, in each round lighter or darker than in the round before. */
function shade(colour: Rgb, round: number): Rgb {
  if (round === 0) return colour;
  const depth = 0.16 + 0.44 * (((round + 1) >> 1) / 4);
  return mix(colour, round % 2 ? [255, 255, 255] : [0, 0, 0], Math.min(0.7, depth));
}

function make(dark: boolean): Palette {
  const nodes = dark ? NODES.dark : NODES.light;
  const ramp = dark ? VIRIDIS : PALE;
  const pick = (light: string, other: string) => rgb(dark ? other : light);
  const [local, remote] = [pick("#1667a8", "#4ca3ea"), pick("#c45500", "#ff9440")];
  const middle = pick("#e4e2dd", "#4b4a49");
  return {
    dark,
    ground: pick("#f4f5f7", "#0f1318"),
    card: pick("#ffffff", "#171c23"),
    ink: pick("#15191f", "#e8ecf1"),
    muted: pick("#5a6470", "#9ba6b3"),
    line: pick("#dfe3e8", "#2b333d"),
    home: pick("#d5dae1", "#343d49"),
    spread: pick("#c4c9d0", "#4a535f"),
    local,
    remote,
    classes: dark ? CLASSES.dark : CLASSES.light,
    node: (index) => shade(nodes[index % 8]!, Math.floor(index / 8)),
    quantity: (share) => along(ramp, share),
    locality: (share) => along([remote, mix(remote, middle, 0.55), middle, mix(local, middle, 0.55), local], share),
  };
}

const LIGHT = make(false);
const DARK = make(true);
export const palette = (dark: boolean): Palette => (dark ? DARK : LIGHT);
