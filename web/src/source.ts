// The source of documents: a server, or the page's own file. Both provide the same documents under the same names.

import type { Machine, Report, Session, Strip, Threads } from "./documents";
import { unpack, type Packed } from "./packed";

/** Thrown if a document is not available; the message is shown to users. */
export class Missing extends Error {}

export interface Source {
  /** Whether figures may still change. */
  readonly live: boolean;
  bytes(name: string): Promise<Uint8Array>;
  /** Calls back when documents have changed or the connection was lost or restored. Returns a function to stop. */
  watch(changed: (event: LiveEvent) => void): () => void;
}

export type LiveEvent =
  | { kind: "session"; session: Session }
  | { kind: "interval"; interval: Record<string, unknown> }
  | { kind: "connection"; connected: boolean };

/** Characters that change the direction of text; in a name they would also affect the text after it. */
const DIRECTION_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Parses JSON that contains text from the observed program; characters that change the direction are replaced. */
export function parse<T>(text: string): T {
  return JSON.parse(text.replace(DIRECTION_CONTROLS, "\ufffd")) as T;
}

async function json<T>(source: Source, name: string): Promise<T> {
  return parse<T>(new TextDecoder().decode(await source.bytes(name)));
}

/** A cache of a source's documents by name; each is fetched once per generation. */
export class Documents {
  private kept = new Map<string, Promise<unknown>>();
  constructor(
    readonly source: Source,
    readonly session: Session,
  ) {}

  private once<T>(name: string, make: () => Promise<T>): Promise<T> {
    let made = this.kept.get(name) as Promise<T> | undefined;
    if (made) {
      // Moved to the end: the least recently used entry is removed first.
      this.kept.delete(name);
      this.kept.set(name, made);
    } else {
      made = make();
      made.catch(() => this.kept.delete(name));
      this.kept.set(name, made);
      // The number of tiles is unlimited, so the least recently used ones are removed.
      if (this.kept.size > 512) this.kept.delete(this.kept.keys().next().value as string);
    }
    return made;
  }
  private packed(name: string): Promise<Packed> {
    return this.once(name, async () => unpack(await this.source.bytes(name)));
  }

  /** Fetches the whole documents that an older generation had, so that views have them at once. Tiles are fetched on
   *  demand. */
  async again(before: Documents | undefined): Promise<void> {
    const names = [...(before?.kept.keys() ?? [])].filter((name) => /\.json$/.test(name));
    await Promise.all(names.map((name) => this.once(name, () => json<unknown>(this.source, name)).catch(() => undefined)));
  }

  /** The report, with the keys of `nodewise report --json`. */
  report = (profile: number) => this.once(`p/${profile}/report.json`, () => json<Report>(this.source, `p/${profile}/report.json`));
  machine = (profile: number) => this.once(`p/${profile}/machine.json`, () => json<Machine>(this.source, `p/${profile}/machine.json`));
  threads = (profile: number) => this.once(`p/${profile}/threads.json`, () => json<Threads>(this.source, `p/${profile}/threads.json`));
  strip = (profile: number) => this.once(`p/${profile}/strip.json`, () => json<Strip>(this.source, `p/${profile}/strip.json`));
  tile = (profile: number, level: number, index: number) => this.packed(`p/${profile}/tile/${level}/${index}`);
  detail = (profile: number, level: number, index: number) => this.packed(`p/${profile}/detail/${level}/${index}`);
  film = (profile: number) => this.packed(`p/${profile}/film`);
}
