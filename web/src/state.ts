// What is looked at, kept in the address behind the #: so a link restores it, and so does the back button.

import { useEffect, useState } from "preact/hooks";

/** Short strings by name: `view`, `profile`, `policy`, `colour`, `from`, `to` … */
export type State = Readonly<Record<string, string>>;

const CHANGED = "nodewise-state";

export function read(): State {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** Changes some of it; `undefined` takes a key away. `replace` leaves no step for the back button: for drags. */
export function update(patch: Record<string, string | undefined>, replace = false): void {
  const next = new URLSearchParams(location.hash.slice(1));
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) next.delete(key);
    else next.set(key, value);
  }
  const hash = `#${next}`;
  if (hash === location.hash) return;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  dispatchEvent(new Event(CHANGED));
}

export function useAddress(): State {
  const [state, set] = useState(read);
  useEffect(() => {
    const changed = () => set(read());
    for (const event of [CHANGED, "popstate", "hashchange"]) addEventListener(event, changed);
    return () => {
      for (const event of [CHANGED, "popstate", "hashchange"]) removeEventListener(event, changed);
    };
  }, []);
  return state;
}
