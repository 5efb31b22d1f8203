// Where figures come from: a server, or this very file. Both hold the same documents under the same names.

import type { Machine, Report, Session, Strip, Threads } from "./documents";
import { unpack, type Packed } from "./packed";

/** Raised when a document cannot be had; its message is for people. */
export class Missing extends Error {}

export interface Source {
  /** Whether figures may still change. */
  readonly live: boolean;
  bytes(name: string): Promise<Uint8Array>;
  /** Calls back whenever documents have changed or the connection was lost or came back; returns the way to stop it. */
  watch(changed: (event: LiveEvent) => void): () => void;
}

export type LiveEvent =
  | { kind: "session"; session: Session }
  | { kind: "interval"; interval: Record<string, unknown> }
  | { kind: "connection"; connected: boolean };

/** Characters that turn the direction of text: a name with one would turn the words behind it as well. */
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** What came from the observed program's side, without such characters. */
export function parse<T>(text: string): T {
  return JSON.parse(text.replace(TURNING, "\ufffd")) as T;
}

async function json<T>(source: Source, name: string): Promise<T> {
  return parse<T>(new TextDecoder().decode(await source.bytes(name)));
}

/** The documents of a source by name, fetched once a generation. */
export class Documents {
  private kept = new Map<string, Promise<unknown>>();
  constructor(
    readonly source: Source,
    readonly session: Session,
  ) {}

  private once<T>(name: string, make: () => Promise<T>): Promise<T> {
    let made = this.kept.get(name) as Promise<T> | undefined;
    if (made) {
      // Looked at last, goes last.
      this.kept.delete(name);
      this.kept.set(name, made);
    } else {
      made = make();
      made.catch(() => this.kept.delete(name));
      this.kept.set(name, made);
      // Tiles of a long look around are many: those that were looked at longest ago go first.
      if (this.kept.size > 512) this.kept.delete(this.kept.keys().next().value as string);
    }
    return made;
  }
  private packed(name: string): Promise<Packed> {
    return this.once(name, async () => unpack(await this.source.bytes(name)));
  }

  /** Asks anew for what an older generation had of whole documents, so that views have it at once; tiles come as they are looked at. */
  async again(before: Documents | undefined): Promise<void> {
    const names = [...(before?.kept.keys() ?? [])].filter((name) => /\.json$/.test(name));
    await Promise.all(names.map((name) => this.once(name, () => json<unknown>(this.source, name)).catch(() => undefined)));
  }

  /** The report, key by key that of `nodewise report --json`. */
  report = (profile: number) => this.once(`p/${profile}/report.json`, () => json<Report>(this.source, `p/${profile}/report.json`));
  machine = (profile: number) => this.once(`p/${profile}/machine.json`, () => json<Machine>(this.source, `p/${profile}/machine.json`));
  threads = (profile: number) => this.once(`p/${profile}/threads.json`, () => json<Threads>(this.source, `p/${profile}/threads.json`));
  strip = (profile: number) => this.once(`p/${profile}/strip.json`, () => json<Strip>(this.source, `p/${profile}/strip.json`));
  tile = (profile: number, level: number, index: number) => this.packed(`p/${profile}/tile/${level}/${index}`);
  detail = (profile: number, level: number, index: number) => this.packed(`p/${profile}/detail/${level}/${index}`);
  film = (profile: number) => this.packed(`p/${profile}/film`);
}
