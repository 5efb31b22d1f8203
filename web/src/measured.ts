// A hook that follows the width of an element.

import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** Smallest width that figures are drawn for; a narrower element scrolls, or has not been laid out yet. */
const MIN_WIDTH = 360;

export function useWidth(element: RefObject<HTMLElement>, first = 800): number {
  const [width, set] = useState(first);
  useLayoutEffect(() => {
    const found = element.current;
    if (!found) return;
    const measure = () => set(Math.max(MIN_WIDTH, Math.floor(found.getBoundingClientRect().width)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(found);
    return () => observer.disconnect();
  }, []);
  return width;
}
