// What stands around every view: header, menu, footer, keys.

import { useState } from "preact/hooks";
import { Caption } from "./caption";
import type { Report } from "./documents";
import { Footer } from "./footer";
import { Header } from "./header";
import { Help } from "./help";
import { useKeys } from "./keyboard";
import { useLoaded } from "./loaded";
import type { Documents } from "./source";
import { update, useAddress } from "./state";
import { toggleTheme } from "./theme";
import { Tip } from "./tip";
import { views } from "./views/index";

export interface ShellProps {
  documents: Documents;
  intervals: readonly Record<string, unknown>[];
  connected: boolean;
}

/** A name that any file system takes. */
const fileName = (report: Report) =>
  `nodewise-${(report.program.command[0] ?? "").split("/").pop()?.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 40) || "profile"}`;

const caption = (report: Report) => ({
  file: fileName(report),
  line: `${report.program.command.join(" ").slice(0, 120)} · ${report.machine.name}, threads ${report.affinity.name} · nodewise ${report.nodewise}`,
});

export function Shell({ documents, intervals, connected }: ShellProps) {
  const state = useAddress();
  const [help, showHelp] = useState(false);
  const { profiles } = documents.session;
  const asked = Number(state.profile ?? 0);
  const profile = Number.isInteger(asked) && asked >= 0 && asked < profiles.length ? asked : 0;
  const { value: report, error } = useLoaded(() => documents.report(profile), [documents, profile]);
  const view = views.find((v) => v.id === state.view) ?? views[0];
  useKeys((key) => {
    const chosen = views.find((v) => v.key === key);
    if (chosen) update({ view: chosen.id });
    else if (key === "?") showHelp(true);
    else if (key === "t") toggleTheme();
    else return false;
    return true;
  });
  if (error && !report) return <p class="alone" role="alert">{error}</p>;
  if (!report || !view) return <p class="alone" role="status">Reading the report …</p>;
  return (
    <Caption.Provider value={caption(report)}>
      <a class="skip" href="#content" onClick={(e) => (e.preventDefault(), document.getElementById("content")?.focus())}>
        To the figures
      </a>
      <Header documents={documents} report={report} profile={profile} view={view} connected={connected} help={() => showHelp(true)} />
      <main id="content" tabIndex={-1}>
        <section class="view" data-view={view.id} aria-labelledby="view-title">
          <h2 id="view-title" class="unseen">{view.title}</h2>
          <view.component key={`${view.id} ${profile}`} {...{ documents, report, profile, state, intervals }} />
        </section>
      </main>
      <Footer report={report} />
      {help && <Help close={() => showHelp(false)} />}
      <Tip />
    </Caption.Provider>
  );
}
