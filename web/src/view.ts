// The interface of a view. Each view has a file of its own and a line in `views/index.ts`.

import type { ComponentType } from "preact";
import type { Report } from "./documents";
import type { Documents } from "./source";
import type { State } from "./state";

export interface ViewProps {
  documents: Documents;
  report: Report;
  /** Index of the profile in the session. */
  profile: number;
  state: State;
  /** Status lines of a live session, one for each interval, the newest last; empty if there is no live session. */
  intervals: readonly Record<string, unknown>[];
}

export interface View {
  id: string;
  title: string;
  /** The key that opens the view. */
  key: string;
  /** Description of the view, in one line. */
  what: string;
  component: ComponentType<ViewProps>;
}
