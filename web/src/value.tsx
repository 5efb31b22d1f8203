// A figure of a document, and where in it: what the page shows can be read back and compared.

import { format, type Kind } from "./format";

/** What a JSON pointer (RFC 6901) leads to; `undefined` where nothing is. */
export function at(document: unknown, pointer: string): unknown {
  let found = document;
  for (const part of pointer.split("/").slice(1)) {
    if (found === null || typeof found !== "object") return undefined;
    found = (found as Record<string, unknown>)[part.replace(/~1/g, "/").replace(/~0/g, "~")];
  }
  return found;
}

export interface ValueProps {
  pointer: string;
  of: unknown;
  as: Kind;
  /** The text, where it is another than the figure's own. */
  text?: (value: number) => string;
  /** Which profile of the session, where it is not the one looked at. */
  profile?: number;
}

export function Value({ pointer, of, as, text, profile }: ValueProps) {
  const value = at(of, pointer);
  if (typeof value !== "number") {
    return (
      <data class="unknown" data-pointer={pointer} data-profile={profile} value="" title="not known">
        –
      </data>
    );
  }
  return (
    <data data-pointer={pointer} data-profile={profile} value={String(value)}>
      {text ? text(value) : format(value, as)}
    </data>
  );
}
