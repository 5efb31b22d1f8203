// Shows a figure of a document, with its JSON pointer, so that tests can compare the page with the document.

import { format, type Kind } from "./format";

/** The value at a JSON pointer (RFC 6901); `undefined` if there is none. */
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
  /** Formats the value, if not by its kind. */
  text?: (value: number) => string;
  /** Index of the profile in the session, if it is not the current one. */
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
