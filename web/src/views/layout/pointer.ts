// Pointer, wheel and keyboard on the picture.

import { runAt } from "../../paint/bands";
import { inside } from "./geometry";
import type { Cursor, Scene } from "./scene";
import { clamped, panned, whole, zoomed, type Span } from "./span";

export interface PointerActions {
  /** The user has changed the span. */
  moved(): void;
  /** The user has selected an object; −1 for none. */
  chose(object: number): void;
}

type Drag = { kind: "pan" | "brush" | "carry"; x: number; span: Span; far: boolean };

export function followPointer(scene: Scene, actions: PointerActions): () => void {
  const target = scene.base;
  let drag: Drag | null = null;
  const show = (span: Span) => {
    scene.show(span);
    actions.moved();
  };
  const pages = () => scene.strip.pages;
  const share = (x: number) => (x - scene.geometry.x) / scene.geometry.w;
  const inSpan = (x: number) => scene.span.from + Math.max(0, Math.min(1, share(x))) * (scene.span.to - scene.span.from);
  const inWhole = (x: number) => Math.max(0, Math.min(1, share(x))) * Math.max(1, pages());
  const onMap = (y: number) => y < scene.geometry.funnel.y;
  const cursorAt = (x: number, y: number): Cursor => {
    const { threads, row } = scene.geometry;
    return { position: Math.min(pages() - 1e-6, inSpan(x)), row: inside(threads, y) ? Math.floor((y - threads.y) / row) : -1 };
  };

  const wheel = (event: WheelEvent) => {
    if (event.ctrlKey && event.deltaY === 0) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    const size = scene.span.to - scene.span.from;
    const across = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY))
      return show(panned(scene.span, (across * unit * size) / scene.geometry.w, pages()));
    const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY * unit * 0.0022)));
    show(zoomed(scene.span, onMap(event.offsetY) ? inWhole(event.offsetX) : inSpan(event.offsetX), factor, pages()));
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    target.setPointerCapture(event.pointerId);
    const { from, to } = scene.span;
    const at = inWhole(event.offsetX);
    const carry = at >= from && at <= to && to - from < pages();
    drag = { kind: onMap(event.offsetY) ? (carry ? "carry" : "brush") : "pan", x: event.offsetX, span: scene.span, far: false };
  };
  const move = (event: PointerEvent) => {
    const { offsetX: x, offsetY: y } = event;
    if (!drag) return scene.point(onMap(y) || x < scene.geometry.x ? null : cursorAt(x, y));
    if (!drag.far && Math.abs(x - drag.x) < 4) return;
    drag.far = true;
    const { from, to } = drag.span;
    if (drag.kind === "pan") show(panned(drag.span, ((drag.x - x) / scene.geometry.w) * (to - from), pages()));
    else if (drag.kind === "carry") show(panned(drag.span, ((x - drag.x) / scene.geometry.w) * pages(), pages()));
    else show(clamped({ from: Math.min(inWhole(drag.x), inWhole(x)), to: Math.max(inWhole(drag.x), inWhole(x)) }, pages()));
  };
  const up = (event: PointerEvent) => {
    if (drag && !drag.far) click(event.offsetX, event.offsetY);
    drag = null;
  };
  const click = (x: number, y: number) => {
    if (x < scene.geometry.x) return;
    if (onMap(y) && y > scene.geometry.overview.y) {
      const half = (scene.span.to - scene.span.from) / 2;
      return show(clamped({ from: inWhole(x) - half, to: inWhole(x) + half }, pages()));
    }
    const run = scene.strip.objects[runAt(scene.strip.objects, onMap(y) ? inWhole(x) : inSpan(x))];
    if (run) actions.chose(run.object);
  };
  const twice = (event: MouseEvent) => {
    const run = scene.strip.objects[runAt(scene.strip.objects, onMap(event.offsetY) ? inWhole(event.offsetX) : inSpan(event.offsetX))];
    if (!run) return;
    actions.chose(run.object);
    show(clamped({ from: run.first, to: run.first + run.pages }, pages()));
  };
  const leave = () => !drag && scene.point(null);
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !pressed(event.key, event.shiftKey)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const pressed = (name: string, shift: boolean): boolean => {
    const { span } = scene;
    const size = span.to - span.from;
    const at = scene.cursor ?? { position: Math.floor((span.from + span.to) / 2), row: -1 };
    const cell = 2 ** scene.level;
    const step = Math.max(cell, shift ? size / 10 : 0);
    const rows = scene.rows.length + (scene.rows.others ? 1 : 0);
    switch (name) {
      case "ArrowLeft":
      case "ArrowRight": {
        // The cursor is set to the middle of a cell, because the cell's edge may be drawn in its neighbour's column.
        const middle = (Math.floor(at.position / cell) + 0.5) * cell + (name === "ArrowLeft" ? -step : step);
        const position = Math.max(0, Math.min(pages() - 0.5, middle));
        if (position < span.from || position >= span.to)
          show(panned(span, position < span.from ? position - span.from : position + cell - span.to, pages()));
        scene.point({ ...at, position });
        return true;
      }
      case "ArrowUp":
      case "ArrowDown":
        scene.point({ ...at, row: Math.max(-1, Math.min(rows - 1, at.row + (name === "ArrowUp" ? -1 : 1))) });
        return true;
      case "+":
      case "=":
      case "-":
        show(zoomed(span, at.position, name === "-" ? 2 : 0.5, pages()));
        return true;
      case "PageUp":
      case "PageDown":
        show(panned(span, name === "PageUp" ? -size : size, pages()));
        return true;
      case "Home":
      case "End":
        scene.point({ ...at, position: name === "Home" ? span.from : Math.max(span.from, span.to - cell) });
        return true;
      case "Enter": {
        const run = scene.strip.objects[runAt(scene.strip.objects, at.position)];
        if (run) actions.chose(run.object);
        return true;
      }
      case "Escape":
        show(whole(pages()));
        actions.chose(-1);
        return true;
    }
    return false;
  };

  const heard: [string, (event: never) => void, AddEventListenerOptions?][] = [
    ["wheel", wheel, { passive: false }],
    ["pointerdown", down],
    ["pointermove", move],
    ["pointerup", up],
    ["pointercancel", () => (drag = null)],
    ["pointerleave", leave],
    ["dblclick", twice],
    ["keydown", key],
  ];
  for (const [name, hear, options] of heard) target.addEventListener(name, hear as EventListener, options);
  return () => {
    for (const [name, hear] of heard) target.removeEventListener(name, hear as EventListener);
  };
}
