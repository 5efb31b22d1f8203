// The state of the page, kept in the address after the #, so that links and the back button restore it.

import { useEffect, useRef, useState } from "preact/hooks";

/** Short strings by name: `view`, `profile`, `policy`, `colour`, `from`, `to` … */
export type State = Readonly<Record<string, string>>;

const STATE_CHANGED = "nodewise-state";

export function read(): State {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** Changes keys of the state; `undefined` removes a key. With `replace`, no history entry is added, as for drags. */
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
  dispatchEvent(new Event(STATE_CHANGED));
}

export function useAddress(): State {
  const [state, set] = useState(read);
  const drawn = useRef(location.hash);
  useEffect(() => {
    const changed = () => set(read());
    for (const event of [STATE_CHANGED, "popstate", "hashchange"]) addEventListener(event, changed);
    // The address may have changed since it was first read, when it was not listened to yet.
    if (location.hash !== drawn.current) changed();
    return () => {
      for (const event of [STATE_CHANGED, "popstate", "hashchange"]) removeEventListener(event, changed);
    };
  }, []);
  return state;
}
