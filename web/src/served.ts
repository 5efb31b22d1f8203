// A source that fetches single documents from `nodewise serve` and listens to its events about changes.

import type { Session } from "./documents";
import { Missing, parse, type LiveEvent, type Source } from "./source";

/** Seconds until the next attempt to reconnect; they grow with each attempt (exponential back-off). */
const RETRY_SECONDS = [1, 2, 4, 8];

async function bytes(name: string): Promise<Uint8Array> {
  let answer: Response;
  try {
    answer = await fetch(name, { credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Missing("The server does not answer: is nodewise still running?");
  }
  if (!answer.ok) throw new Missing(`The server has no ${name} (it says ${answer.status}).`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** Receives events. A plain `EventSource` does not reconnect after an HTTP error; this function does. */
function watch(changed: (event: LiveEvent) => void): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let attempts = 0;
  const open = () => {
    source = new EventSource("events");
    source.onopen = () => {
      attempts = 0;
      changed({ kind: "connection", connected: true });
    };
    source.onerror = () => {
      changed({ kind: "connection", connected: false });
      source?.close();
      timer = setTimeout(open, 1000 * RETRY_SECONDS[Math.min(attempts++, RETRY_SECONDS.length - 1)]!);
    };
    const hear = (kind: "session" | "interval") => (event: MessageEvent<string>) => {
      const data = parse<Record<string, unknown>>(event.data);
      changed(kind === "session" ? { kind, session: data as unknown as Session } : { kind, interval: data });
    };
    source.addEventListener("session", hear("session"));
    source.addEventListener("interval", hear("interval"));
  };
  open();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
}

export const served: Source = { live: true, bytes, watch };
