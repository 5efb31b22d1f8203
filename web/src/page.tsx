// The page: waits for the first documents of its source, follows changes, and shows the shell.

import { useEffect, useState } from "preact/hooks";
import type { Session } from "./documents";
import { sentence } from "./loaded";
import { Shell } from "./shell";
import { Documents, parse, type Source } from "./source";

/** Largest number of intervals of a live session that are kept. */
const MAX_INTERVALS = 600;

interface Open {
  documents: Documents;
  intervals: readonly Record<string, unknown>[];
}

async function session(source: Source): Promise<Session> {
  return parse<Session>(new TextDecoder().decode(await source.bytes("session.json")));
}

type Interval = Record<string, unknown>;

/** Appends an interval. After a reconnection the server repeats the last one, which is ignored. */
function followed(before: readonly Interval[], interval: Interval): readonly Interval[] {
  const last = before[before.length - 1];
  if (last && Number(interval.seconds) <= Number(last.seconds)) return before;
  return [...before.slice(1 - MAX_INTERVALS), interval];
}

export function Page({ open }: { open: () => Promise<Source> }) {
  const [shown, show] = useState<Open | null>(null);
  const [error, fail] = useState("");
  const [connected, connect] = useState(true);
  useEffect(() => {
    let stop = () => {};
    let latest = "";
    let before: Documents | undefined;
    /** Shows a session's documents once the ones in view are loaded, unless a newer session has arrived. */
    const take = async (source: Source, next: Session) => {
      const name = JSON.stringify(next);
      if (name === latest || (before && next.generation < before.session.generation)) return;
      latest = name;
      const documents = new Documents(source, next);
      await documents.again(before);
      if (latest !== name) return;
      before = documents;
      fail("");
      show((old) => ({ documents, intervals: old?.intervals ?? [] }));
    };
    const start = async () => {
      const source = await open();
      await take(source, await session(source));
      stop = source.watch((event) => {
        if (event.kind === "connection") connect(event.connected);
        if (event.kind === "session") take(source, event.session).catch((e: unknown) => fail(sentence(e)));
        if (event.kind === "interval") {
          show((old) => old && { ...old, intervals: followed(old.intervals, event.interval) });
        }
      });
    };
    start().catch((e: unknown) => fail(sentence(e)));
    return () => stop();
  }, []);
  if (!shown)
    return (
      <p class="alone" role={error ? "alert" : "status"}>
        {error || "Reading the profile …"}
      </p>
    );
  const { session: now } = shown.documents;
  // Once a profile is complete, a lost connection does not matter.
  const missed = !connected && now.live;
  if (now.profiles.length === 0) {
    return (
      <p class="alone" role="status">
        {missed ? "Connection lost, trying again." : now.message || "There is nothing to show yet."}
      </p>
    );
  }
  return <Shell {...shown} connected={!missed} trouble={error || now.message || ""} />;
}
