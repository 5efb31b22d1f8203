// What to know first: is placement a problem, where, and what to do next.

import type { View, ViewProps } from "../view";
import { Tiles } from "./overview/tiles";
import { VerdictCard } from "./overview/verdict";

function Overview({ report }: ViewProps) {
  return (
    <>
      <div class="lead">
        <VerdictCard report={report} />
        <Tiles report={report} />
      </div>
    </>
  );
}

export const overview: View = {
  id: "overview",
  title: "Overview",
  key: "1",
  what: "The verdict, the machine, every policy, and the objects that are to blame.",
  component: Overview,
};
