// The frame of every view: header, menu, footer, keys.

import { useEffect, useState } from "preact/hooks";
import { Caption } from "./caption";
import type { Report } from "./documents";
import { Footer } from "./footer";
import { Header } from "./header";
import { Help } from "./help";
import { useKeys } from "./keyboard";
import { useLoaded } from "./loaded";
import { base } from "./profiles";
import type { Documents } from "./source";
import { update, useAddress } from "./state";
import { toggleTheme } from "./theme";
import { Tip } from "./tip";
import { views } from "./views/index";

export interface ShellProps {
  documents: Documents;
  intervals: readonly Record<string, unknown>[];
  connected: boolean;
  /** A one-sentence message to the user, or empty. */
  trouble: string;
}

/** A file name that is valid on all file systems. */
const fileName = (program: string) => `nodewise-${program.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 40) || "profile"}`;

function caption({ program, machine, affinity, nodewise }: Report) {
  const [command = "", ...rest] = program.command;
  const title = [base(command), ...rest].join(" ").slice(0, 120);
  return { title, file: fileName(base(command)), line: `${title} · ${machine.name}, threads ${affinity.name} · nodewise ${nodewise}` };
}

export function Shell({ documents, intervals, connected, trouble }: ShellProps) {
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
  useEffect(() => {
    if (report && view) document.title = `${caption(report).title} · ${view.title} · nodewise`;
  }, [report, view]);
  if (error && !report)
    return (
      <p class="alone" role="alert">
        {error}
      </p>
    );
  if (!report || !view)
    return (
      <p class="alone" role="status">
        Reading the report …
      </p>
    );
  return (
    <Caption.Provider value={caption(report)}>
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place; only the address stays, which holds the view */}
      <a
        class="skip"
        href="#content"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById("content")?.focus();
        }}
      >
        To the figures
      </a>
      <Header documents={documents} report={report} {...{ profile, view, connected, trouble }} help={() => showHelp(true)} />
      <main id="content" tabIndex={-1}>
        <section class="view" data-view={view.id} aria-labelledby="view-title">
          <h2 id="view-title" class="unseen">
            {view.title}
          </h2>
          <view.component key={`${view.id} ${profile}`} {...{ documents, report, profile, state, intervals }} />
        </section>
      </main>
      <Footer report={report} />
      {help && <Help close={() => showHelp(false)} />}
      <Tip />
    </Caption.Provider>
  );
}
