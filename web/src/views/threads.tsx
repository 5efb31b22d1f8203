// Threads: which threads share memory, on which nodes they run, and a better assignment to nodes.

import "./threads.css";
import { useLoaded } from "../loaded";
import { palette as colours } from "../palette";
import { useTheme } from "../theme";
import type { View, ViewProps } from "../view";
import { List } from "./threads/list";
import { Placement, Worth } from "./threads/placement";
import { Roles } from "./threads/roles";
import { Sharing } from "./threads/sharing";
import { Traffic } from "./threads/traffic";

function ThreadsView({ documents, report, profile, state }: ViewProps) {
  const palette = colours(useTheme() === "dark");
  const { value: threads, error } = useLoaded(() => documents.threads(profile), [documents, profile]);
  if (!threads)
    return (
      <p class="none" role="status">
        {error ? `The threads could not be read: ${error}.` : "Reading the threads …"}
      </p>
    );
  if (threads.groups.length === 0) return <p class="none">No thread accessed memory while the program was observed.</p>;
  const nodes = Math.max(1, report.machine.nodes.length);
  const unit = report.program.exact ? "accesses" : "samples";
  const grouped = threads.groups.some((g) => g.threads.length > 1);
  return (
    <div class="threads">
      {threads.groups.length === 1 && !grouped && <p class="none">One thread: it shares with nobody.</p>}
      {nodes === 1 && <p class="none">One node: wherever threads run, memory is local.</p>}
      {grouped && <p class="none">There are too many threads to show each: neighbours stand together in {threads.groups.length} groups.</p>}
      {nodes > 1 && <Worth threads={threads} />}
      {nodes > 1 && <Roles report={report} />}
      <div class="beside">
        <Sharing threads={threads} nodes={nodes} palette={palette} after={state.order === "after"} unit={unit} />
        <List threads={threads} palette={palette} unit={unit} />
      </div>
      {nodes > 1 && <Placement threads={threads} nodes={nodes} palette={palette} />}
      {nodes > 1 && <Traffic threads={threads} palette={palette} unit={unit} />}
    </div>
  );
}

export const threads: View = {
  id: "threads",
  title: "Threads",
  key: "5",
  what: "Which threads use the same pages, on which nodes they run, and what another placement of them is worth.",
  component: ThreadsView,
};
