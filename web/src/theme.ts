// Light or dark: the reader's system decides, unless told otherwise here.

import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";

const CHANGED = "nodewise-theme";
const KEY = "nodewise-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** Storage may be forbidden, as in a file or a private window. */
function kept(): Theme | null {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null;
  }
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds until the page is left.
  }
}

let chosen = kept();
let printing = false;

export function theme(): Theme {
  if (printing) return "light";
  return chosen ?? (system.matches ? "dark" : "light");
}

/** What the style sheet calls by this name, `--card`, for what knows no style sheets. */
export const variable = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function apply(): void {
  document.documentElement.dataset.theme = theme();
  dispatchEvent(new Event(CHANGED));
}

export function toggleTheme(): void {
  chosen = theme() === "dark" ? "light" : "dark";
  keep(chosen);
  apply();
}

/** Once, before anything is drawn. */
export function startTheme(): void {
  apply();
  system.addEventListener("change", apply);
  // Paper is white.
  for (const [event, on] of [
    ["beforeprint", true],
    ["afterprint", false],
  ] as const) {
    addEventListener(event, () => {
      printing = on;
      apply();
    });
  }
}

/** The theme, for what draws its own colours. */
export function useTheme(): Theme {
  const [now, set] = useState(theme);
  useEffect(() => {
    const changed = () => set(theme());
    addEventListener(CHANGED, changed);
    return () => removeEventListener(CHANGED, changed);
  }, []);
  return now;
}
