// The layout of data: the address space as strips, from all of it down to one page.

import "./layout.css";
import { Figure } from "../figure";
import { useLoaded } from "../loaded";
import type { View, ViewProps } from "../view";
import { Picture } from "./layout/picture";

function Layout(props: ViewProps) {
  const { documents, report, profile } = props;
  const { value: strip, error } = useLoaded(() => documents.strip(profile), [documents, profile]);
  if (!strip)
    return (
      <p class="none" role="status">
        {error ? `The layout could not be read: ${error}.` : "Reading the layout …"}
      </p>
    );
  if (strip.pages === 0 || report.totals.pages === 0) {
    return (
      <Figure id="layout" title="Data layout" what="Every touched page of the program, object after object." rows={() => [["page"]]}>
        <p class="none">No page was touched while the program was observed: there is nothing to lay out.</p>
      </Figure>
    );
  }
  return <Picture {...props} strip={strip} />;
}

export const layout: View = {
  id: "layout",
  title: "Layout",
  key: "2",
  what: "Where every page is used from, where it lives, and where it would live: from the whole address space to one page.",
  component: Layout,
};
