// The tooltip of the page: it shows the meaning of a term or a figure, from the attribute `data-tip` of an element.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { EXPLAIN, type Term as TermKey } from "./explain";

const EDGE = 8;

/** A name with its meaning on hover, focus or touch. */
export function Term({ of, children }: { of: TermKey; children?: ComponentChildren }) {
  const { name, text, unit, source } = EXPLAIN[of];
  return (
    <span
      class="term"
      tabIndex={0}
      data-tip={text}
      data-unit={unit}
      data-source={source}
      aria-description={`${text} Unit: ${unit}. Source: ${source}.`}
    >
      {children ?? name}
    </span>
  );
}

interface Shown {
  text: string;
  unit?: string;
  source?: string;
}

function place(tip: HTMLElement, target: Element): void {
  const at = target.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const left = Math.max(EDGE, Math.min(at.left, innerWidth - size.width - EDGE));
  const below = at.bottom + EDGE;
  const top = below + size.height > innerHeight ? Math.max(EDGE, at.top - size.height - EDGE) : below;
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}

/** Listens on the document, so that no figure needs listeners of its own. */
export function Tip() {
  const [shown, show] = useState<Shown | null>(null);
  const tip = useRef<HTMLDivElement>(null);
  const target = useRef<Element | null>(null);
  useEffect(() => {
    const enter = (event: Event) => {
      const found = (event.target as Element | null)?.closest?.("[data-tip]") ?? null;
      if (found === target.current) return;
      target.current = found;
      const data = (found as HTMLElement | SVGElement | null)?.dataset;
      show(data?.tip ? { text: data.tip, unit: data.unit, source: data.source } : null);
    };
    const leave = (event: Event) => {
      if (event instanceof KeyboardEvent && event.key !== "Escape") return;
      target.current = null;
      show(null);
    };
    // Focus may have scrolled its element into view.
    const scrolled = () => {
      if (target.current && tip.current && target.current === document.activeElement) place(tip.current, target.current);
      else leave(new Event("scroll"));
    };
    for (const name of ["pointerover", "focusin"]) document.addEventListener(name, enter);
    for (const name of ["focusout", "keydown"]) document.addEventListener(name, leave, true);
    document.addEventListener("scroll", scrolled, true);
    return () => {
      for (const name of ["pointerover", "focusin"]) document.removeEventListener(name, enter);
      for (const name of ["focusout", "keydown"]) document.removeEventListener(name, leave, true);
      document.removeEventListener("scroll", scrolled, true);
    };
  }, []);
  useEffect(() => {
    if (shown && tip.current && target.current) place(tip.current, target.current);
  }, [shown]);
  // Hidden from screen readers, which find the text, visually hidden, at its element.
  return (
    <div class="tip" ref={tip} hidden={!shown} aria-hidden="true">
      {shown?.text}
      {shown?.unit && <small>unit: {shown.unit}</small>}
      {shown?.source && <small>source: {shown.source}</small>}
    </div>
  );
}
