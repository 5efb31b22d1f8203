"use strict";
// Draws the page × thread figures and answers pointer and keyboard. All words and figures of the
// page are there without this script.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUE = Object.fromEntries([...DIGITS].map((c, i) => [c, i]));
const GUTTER = 64;
const figures = JSON.parse(document.getElementById("figures").textContent);
let placement = 0;

// Level 0 is "never"; 1..4095 is logarithmic up to the largest cell.
const level = (f, cell) => VALUE[f.accesses[2 * cell]] * 64 + VALUE[f.accesses[2 * cell + 1]];
const accesses = (f, cell) => {
  const l = level(f, cell);
  return l === 0 ? 0 : Math.round(Math.exp(((l - 1) / 4094) * Math.log(f.max)));
};
const home = (f, node, column) => VALUE[f.homes[placement][node * f.columns + column]] / 63;
const local = (f, cell) => VALUE[f.local[placement][cell]] / 63;

function color(name) {
  const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((i) => parseInt(value.slice(i, i + 2), 16));
}
const css = (rgb) => `rgb(${rgb.map(Math.round).join(" ")})`;
const mix = (a, b, t) => a.map((x, i) => x + (b[i] - x) * t);

// Rows are as high as fits: at least 5 pixels, 14 if there are few.
const rowHeight = (f) => Math.max(5, Math.min(14, Math.floor(224 / f.rows.length)));

function draw(canvas, f, focus) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = rowHeight(f) * f.rows.length;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const palette = { card: color("--card"), home: color("--home"), local: color("--local"), remote: color("--remote") };
  pen.fillStyle = css(palette.card);
  pen.fillRect(0, 0, width, height);
  const x = (column) => GUTTER + (column / f.columns) * (width - GUTTER);
  for (let row = 0; row < f.rows.length; row++) {
    for (let column = 0; column < f.columns; column++) {
      const cell = row * f.columns + column;
      const here = home(f, f.rows[row][1], column);
      const ground = mix(palette.card, palette.home, here);
      const l = level(f, cell);
      if (here === 0 && l === 0) continue;
      const hue = mix(palette.remote, palette.local, local(f, cell));
      pen.fillStyle = css(l === 0 ? ground : mix(ground, hue, 0.15 + 0.85 * (l / 4095) ** 3));
      const left = Math.round(x(column) * scale) / scale;
      const right = Math.round(x(column + 1) * scale) / scale;
      const inset = rowHeight(f) > 8 ? 2 : 1;
      pen.fillRect(left, row * rowHeight(f), right - left, rowHeight(f));
      if (l > 0 && here > 0) {
        // A rim of the band stays visible below what is on it.
        pen.fillStyle = css(ground);
        pen.fillRect(left, (row + 1) * rowHeight(f) - inset / 2, right - left, inset / 2);
      }
    }
  }
  labels(pen, f, width);
  if (focus) {
    pen.strokeStyle = css(color("--ink"));
    pen.lineWidth = 1.5;
    pen.strokeRect(x(focus.column) - 1, focus.row * rowHeight(f) - 1, (width - GUTTER) / f.columns + 2, rowHeight(f) + 2);
  }
  canvas.dataset.drawn = f.placements[placement];
}

function labels(pen, f, width) {
  pen.fillStyle = css(color("--card"));
  pen.fillRect(0, 0, GUTTER - 1, rowHeight(f) * f.rows.length);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  for (let first = 0; first < f.rows.length; ) {
    let end = first + 1;
    while (end < f.rows.length && f.rows[end][1] === f.rows[first][1]) end++;
    pen.fillStyle = css(color("--line"));
    if (first > 0) pen.fillRect(0, first * rowHeight(f) - 0.5, width, 1);
    pen.fillStyle = css(color("--muted"));
    pen.fillText(`node ${f.rows[first][1]}`, 10, ((first + end) / 2) * rowHeight(f));
    first = end;
  }
}

function short(n) {
  const units = ["", " k", " M", " G", " T", " P"];
  let unit = 0;
  while (n >= 999.5 && unit < 5) { n /= 1000; unit++; }
  return unit === 0 ? `${n}` : `${n.toPrecision(3)}${units[unit]}`;
}

function lives(f, column) {
  const nodes = f.homes[placement].length / f.columns;
  const shares = Array.from({ length: nodes }, (_, node) => [node, home(f, node, column)]).filter(([, share]) => share > 0);
  if (shares.length === 1) return `lives on node ${shares[0][0]}`;
  shares.sort((a, b) => b[1] - a[1]);
  const most = shares.slice(0, 3).map(([node, share]) => `node ${node} ${Math.round(share * 100)} %`);
  return `lives on ${most.join(", ")}${shares.length > 3 ? " …" : ""}`;
}

function read(f, { row, column }) {
  const cell = row * f.columns + column;
  const first = Math.floor((column * f.pages) / f.columns);
  const last = Math.floor(((column + 1) * f.pages) / f.columns) - 1;
  const pages = first === last ? `page ${first}` : `pages ${first}–${last}`;
  const n = accesses(f, cell);
  const who = `${f.rows[row][0]} on node ${f.rows[row][1]}`;
  const what = n === 0 ? "no accesses" : `about ${short(n)} accesses, ${Math.round(local(f, cell) * 100)} % local`;
  return `${pages}, ${who}: ${what}; ${lives(f, column)}`;
}

const plates = [...document.querySelectorAll("canvas[data-heat]")].map((canvas) => {
  const f = figures[canvas.dataset.heat];
  const readout = document.querySelector(`output[data-readout="${canvas.dataset.heat}"]`);
  let focus = null;
  const show = (next) => {
    focus = next;
    readout.textContent = focus ? read(f, focus) : "";
    draw(canvas, f, focus);
  };
  const clamp = (value, size) => Math.max(0, Math.min(size - 1, value));
  canvas.addEventListener("pointermove", (event) => {
    const share = (event.offsetX - GUTTER) / (canvas.clientWidth - GUTTER);
    show({ row: clamp(Math.floor(event.offsetY / rowHeight(f)), f.rows.length), column: clamp(Math.floor(share * f.columns), f.columns) });
  });
  canvas.addEventListener("pointerleave", () => show(null));
  canvas.addEventListener("blur", () => show(null));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = focus || { row: 0, column: 0 };
    show({ row: clamp(at.row + step[0], f.rows.length), column: clamp(at.column + step[1], f.columns) });
  });
  return () => show(focus);
});
const redraw = () => plates.forEach((plate) => plate());

for (const input of document.querySelectorAll("input[name=placement]")) {
  if (input.checked) placement = Number(input.value);
  input.addEventListener("change", () => { placement = Number(input.value); redraw(); });
}
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    getSelection().selectAllChildren(source);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected";
    }
  });
}
window.addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
redraw();
