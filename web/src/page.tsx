// The page from its source on: waits for the first documents, follows changes, and shows the shell.

import { useEffect, useState } from "preact/hooks";
import type { Session } from "./documents";
import { sentence } from "./loaded";
import { Shell } from "./shell";
import { Documents, type Source } from "./source";

/** Intervals of a live session that are kept to look at. */
const KEPT = 600;

interface Open {
  documents: Documents;
  intervals: readonly Record<string, unknown>[];
}

async function session(source: Source): Promise<Session> {
  return JSON.parse(new TextDecoder().decode(await source.bytes("session.json"))) as Session;
}

export function Page({ open }: { open: () => Promise<Source> }) {
  const [shown, show] = useState<Open | null>(null);
  const [error, fail] = useState("");
  const [connected, connect] = useState(true);
  useEffect(() => {
    let stop = () => {};
    let latest = -1;
    /** Takes a session's documents once those that are looked at are there; older answers come to nothing. */
    const take = async (source: Source, next: Session) => {
      if (next.generation <= latest) return;
      latest = next.generation;
      let before: Documents | undefined;
      show((old) => ((before = old?.documents), old));
      const documents = new Documents(source, next);
      await documents.again(before);
      if (next.generation === latest) show((old) => ({ documents, intervals: old?.intervals ?? [] }));
    };
    const start = async () => {
      const source = await open();
      await take(source, await session(source));
      stop = source.watch((event) => {
        if (event.kind === "connection") connect(event.connected);
        if (event.kind === "session") take(source, event.session).catch((e: unknown) => fail(sentence(e)));
        if (event.kind === "interval") {
          show((old) => old && { ...old, intervals: [...old.intervals.slice(1 - KEPT), event.interval] });
        }
      });
    };
    start().catch((e: unknown) => fail(sentence(e)));
    return () => stop();
  }, []);
  if (error && !shown) return <p class="alone" role="alert">{error}</p>;
  if (!shown) return <p class="alone" role="status">Reading the profile …</p>;
  return <Shell documents={shown.documents} intervals={shown.intervals} connected={connected} />;
}
