// Light or dark theme: that of the reader's system, unless the reader chooses one on the page.

import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";

const THEME_CHANGED = "nodewise-theme";
const KEY = "nodewise-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** The stored choice. Storage may be unavailable, as on a page opened from a file or in a private window. */
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
    // Without storage the choice lasts until the page is left.
  }
}

let chosen = kept();
let printing = false;

export function theme(): Theme {
  if (printing) return "light";
  return chosen ?? (system.matches ? "dark" : "light");
}

/** The value of a CSS variable such as `--card`, for canvases, which cannot use style sheets. */
export const variable = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function apply(): void {
  document.documentElement.dataset.theme = theme();
  dispatchEvent(new Event(THEME_CHANGED));
}

export function toggleTheme(): void {
  chosen = theme() === "dark" ? "light" : "dark";
  keep(chosen);
  apply();
}

/** Applies the theme and follows changes of it; call this once, before anything is drawn. */
export function startTheme(): void {
  apply();
  system.addEventListener("change", apply);
  // Printing uses the light theme.
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

/** The theme, for components that draw with colours of their own. */
export function useTheme(): Theme {
  const [now, set] = useState(theme);
  useEffect(() => {
    const changed = () => set(theme());
    addEventListener(THEME_CHANGED, changed);
    return () => removeEventListener(THEME_CHANGED, changed);
  }, []);
  return now;
}
