// Names of a session's profiles.

import type { Session } from "./documents";

/** The last part of a path. */
export const base = (path: string) => path.replace(/\/+$/, "").split("/").pop() ?? "";

/** The profile's name; if several profiles have the same name, with its folder. */
export function profileTitle({ profiles }: Session, index: number): string {
  const profile = profiles[index];
  if (!profile) return `profile ${index}`;
  const alone = profiles.filter((p) => p.name === profile.name).length === 1;
  const folder = base(profile.folder);
  return alone || !folder ? profile.name : `${profile.name} (${folder})`;
}
