// What a view is. One file a view, one line in `views/index.ts`.

import type { ComponentType } from "preact";
import type { Report } from "./documents";
import type { Documents } from "./source";
import type { State } from "./state";

export interface ViewProps {
  documents: Documents;
  report: Report;
  /** Which profile of the session. */
  profile: number;
  state: State;
  /** Lines of a live session's intervals, newest last; empty elsewhere. */
  intervals: readonly Record<string, unknown>[];
}

export interface View {
  id: string;
  title: string;
  /** The key that opens it. */
  key: string;
  /** One line: what is this? */
  what: string;
  component: ComponentType<ViewProps>;
}
