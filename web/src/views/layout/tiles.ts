// Loads tiles on demand: the finest loaded tile is drawn until a finer one has arrived, and tiles that are no longer
// visible are not requested.

import type { Find, Piece } from "../../paint/columns";

const MAX_REQUESTS = 6;
const MAX_CACHED_TILES = 384;

interface Want {
  level: number;
  index: number;
}

const key = (level: number, index: number) => level * 2 ** 40 + index;

export class Tiles<T extends Piece> {
  private readonly here = new Map<number, T>();
  private readonly failed = new Set<number>();
  private readonly running = new Set<number>();
  private queue: Want[] = [];

  constructor(
    private readonly coarsest: number,
    private readonly load: (level: number, index: number) => Promise<T>,
    private readonly arrived: (piece: T) => void,
    /** Tiles of the previous generation, used until their replacements have arrived. */
    private older: Tiles<T> | undefined,
  ) {}

  readonly find: Find<T> = (level, position) => {
    for (let l = level; l <= this.coarsest; l++) {
      const piece = this.here.get(key(l, Math.floor(position / 2 ** l / 256)));
      if (piece) return piece;
    }
    return this.older?.find(level, position);
  };

  /** Requests the visible tiles; requests that have not been sent yet are dropped. */
  want(level: number, from: number, to: number): void {
    this.queue = [];
    const add = (l: number, a: number, b: number) => {
      for (let index = Math.floor(a / 2 ** l / 256); index * 256 * 2 ** l < b; index++) {
        const at = key(l, index);
        if (!this.here.has(at) && !this.running.has(at) && !this.failed.has(at)) this.queue.push({ level: l, index });
      }
    };
    add(this.coarsest, 0, 1);
    if (level < this.coarsest) add(level, from, to);
    this.start();
  }

  get complete(): boolean {
    return this.queue.length === 0 && this.running.size === 0;
  }

  private start(): void {
    while (this.running.size < MAX_REQUESTS && this.queue.length > 0) {
      const { level, index } = this.queue.shift()!;
      const at = key(level, index);
      this.running.add(at);
      this.load(level, index)
        .then(
          (piece) => this.take(at, piece),
          () => this.failed.add(at),
        )
        .finally(() => {
          this.running.delete(at);
          this.start();
        });
    }
  }

  private take(at: number, piece: T): void {
    this.here.set(at, piece);
    if (piece.level === this.coarsest) this.older = undefined;
    // The oldest tiles are removed, but never the one that covers everything.
    for (const [old, { level }] of this.here) {
      if (this.here.size <= MAX_CACHED_TILES) break;
      if (level < this.coarsest) this.here.delete(old);
    }
    this.arrived(piece);
  }
}
