// The visible part of the address space, from one position to another; it is at least a page.

export interface Span {
  from: number;
  to: number;
}

export const whole = (pages: number): Span => ({ from: 0, to: Math.max(1, pages) });

export function clamped({ from, to }: Span, pages: number): Span {
  const size = Math.max(1, Math.min(to - from, Math.max(1, pages)));
  const start = Math.max(0, Math.min(from, Math.max(1, pages) - size));
  return { from: start, to: start + size };
}

/** The span scaled by a factor, with the position `about` fixed on the screen. */
export function zoomed(span: Span, about: number, factor: number, pages: number): Span {
  const size = Math.max(1, (span.to - span.from) * factor);
  const share = (about - span.from) / (span.to - span.from);
  // A single page is shown whole.
  const from = size === 1 ? Math.floor(about) : about - share * size;
  return clamped({ from, to: from + size }, pages);
}

export const panned = (span: Span, by: number, pages: number) => clamped({ from: span.from + by, to: span.to + by }, pages);

/** The finest level whose cells are no narrower than a pixel. */
export function levelOf(span: Span, width: number, finest: number, coarsest: number): number {
  const level = Math.ceil(Math.log2(Math.max(1, (span.to - span.from) / Math.max(1, width))) - 1e-9);
  return Math.max(finest, Math.min(coarsest, level));
}

/** The span in the parameters of the address, if it is valid. */
export function read(from: string | undefined, to: string | undefined, pages: number): Span | undefined {
  const [a, b] = [Number(from ?? NaN), Number(to ?? NaN)];
  return Number.isFinite(a) && Number.isFinite(b) && b > a ? clamped({ from: a, to: b }, pages) : undefined;
}
