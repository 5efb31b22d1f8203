// The header: the recorded program, the machine of the report, and the menu of views.

import type { Report } from "./documents";
import { plural } from "./format";
import { base, profileTitle } from "./profiles";
import type { Documents } from "./source";
import { update } from "./state";
import { theme, toggleTheme, useTheme } from "./theme";
import { Term } from "./tip";
import { Value } from "./value";
import type { View } from "./view";
import { views } from "./views/index";

export interface HeaderProps {
  documents: Documents;
  report: Report;
  profile: number;
  view: View;
  connected: boolean;
  trouble: string;
  help: () => void;
}

export function Header(props: HeaderProps) {
  const { report } = props;
  const { command } = report.program;
  const title = [base(command[0] ?? ""), ...command.slice(1)].join(" ");
  return (
    <header class="top">
      <div class="bar">
        <span class="brand">nodewise</span>
        <h1 data-tip={command.join(" ")}>{title || "no command"}</h1>
        <p class="facts">
          <Term of="threads">
            <Value pointer="/program/threads" of={report} as="whole" text={(n) => plural(n, "thread")} />
          </Term>
          {" · "}
          <span data-tip={report.machine.title}>{report.machine.name}</span>
          {` · threads ${report.affinity.name}`}
        </p>
        <Profiles {...props} />
        <Live session={props.documents.session} connected={props.connected} />
        <button type="button" class="plain" onClick={toggleTheme} data-theme-now={useTheme()}>
          {theme() === "dark" ? "Light" : "Dark"}
        </button>
        <button type="button" class="plain" onClick={props.help} aria-label="Help: keys">
          ?
        </button>
      </div>
      <Menu view={props.view} />
      {props.trouble && (
        <p class="warning" role="status">
          {props.trouble}
        </p>
      )}
      {report.program.truncated && (
        <p class="warning">
          <strong>Cut short:</strong> {report.program.truncated}
        </p>
      )}
    </header>
  );
}

function Menu({ view }: { view: View }) {
  return (
    <nav aria-label="Views">
      {views.map((v) => (
        <a
          key={v.id}
          href={`#view=${v.id}`}
          aria-current={v === view ? "page" : undefined}
          data-tip={v.what}
          onClick={(e) => {
            if (e.ctrlKey || e.metaKey) return;
            e.preventDefault();
            update({ view: v.id });
          }}
        >
          {v.title} <kbd>{v.key}</kbd>
        </a>
      ))}
    </nav>
  );
}

function Profiles({ documents, profile }: HeaderProps) {
  const { profiles } = documents.session;
  if (profiles.length < 2) return null;
  return (
    <label class="field">
      Profile
      <select
        value={String(profile)}
        onChange={(e) => update({ profile: e.currentTarget.value, object: undefined, from: undefined, to: undefined })}
      >
        {profiles.map((_, i) => (
          <option key={i} value={String(i)}>
            {profileTitle(documents.session, i)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Live({ session, connected }: { session: Documents["session"]; connected: boolean }) {
  if (!connected)
    return (
      <span class="live lost" role="status">
        connection lost, trying again
      </span>
    );
  if (!session.live) return null;
  return (
    <span class="live" role="status" data-generation={session.generation}>
      live
    </span>
  );
}
