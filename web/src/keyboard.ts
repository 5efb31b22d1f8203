// Keys that work everywhere on the page. Views define further ones.

import { useEffect } from "preact/hooks";

/** The keys and their actions, as listed in the help. */
export const KEYS: readonly [string, string][] = [
  ["1 – 6", "open a view"],
  ["?", "this help"],
  ["t", "light or dark"],
  ["Tab", "to the next control or figure"],
  ["← → ↑ ↓", "in a figure: move from cell to cell, node to node"],
  ["+ −", "in a figure: zoom in and out"],
  ["Escape", "in a figure: the whole again; close this help"],
  ["space", "play and pause"],
];

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName));

/** Calls `act` with each key pressed outside input fields and without modifiers; `true` means the key was used. */
export function useKeys(act: (key: string) => boolean): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing(event.target)) return;
      if (act(event.key)) event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
