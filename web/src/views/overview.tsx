// The overview: whether placement is a problem, for which objects, and what to do next.

import type { View, ViewProps } from "../view";
import { MachineFigure } from "./overview/machine";
import { Objects } from "./overview/objects";
import { Policies } from "./overview/policies";
import { Tiles } from "./overview/tiles";
import { VerdictCard } from "./overview/verdict";

function Overview(props: ViewProps) {
  const { report, state } = props;
  return (
    <>
      <VerdictCard report={report} />
      <Tiles report={report} />
      {report.machine.nodes.length > 1 && <MachineFigure {...props} />}
      {report.machine.nodes.length > 1 && <Policies report={report} state={state} />}
      <Objects report={report} state={state} />
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
