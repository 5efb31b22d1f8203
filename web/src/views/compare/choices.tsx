// Controls to choose the two sides of the comparison.

import { FIRST_TOUCH } from "../../chosen";
import { profileTitle } from "../../profiles";
import { Segments } from "../../segments";
import type { Documents } from "../../source";
import { update, type State } from "../../state";
import type { Pair } from "./sides";

function Policies({ label, state, value, pair }: { label: string; state: string; value: string; pair: Pair }) {
  return (
    <label class="field">
      {label}
      <select value={value} onChange={(e) => update({ [state]: e.currentTarget.value })}>
        {pair.a.report.policies.map((p) => (
          <option key={p.policy} value={p.policy}>
            {p.policy === FIRST_TOUCH ? `${p.policy} (today)` : p.policy}
          </option>
        ))}
      </select>
    </label>
  );
}

function Profiles({ label, state, value, documents }: { label: string; state: string; value: number; documents: Documents }) {
  return (
    <label class="field">
      {label}
      <select value={String(value)} onChange={(e) => update({ [state]: e.currentTarget.value })}>
        {documents.session.profiles.map((_, i) => (
          <option key={i} value={String(i)}>
            {profileTitle(documents.session, i)}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Choices({ pair, documents, state }: { pair: Pair; documents: Documents; state: State }) {
  const several = documents.session.profiles.length > 1;
  return (
    <div class="card choices">
      {several && (
        <Segments
          label="Compare"
          state="compare"
          value={pair.profiles ? "profiles" : "policies"}
          options={[
            ["profiles", "Two profiles"],
            ["policies", "Two policies"],
          ]}
        />
      )}
      {pair.profiles ? (
        <>
          <Profiles label="From" state="profile" value={pair.a.profile} documents={documents} />
          <Profiles label="to" state="against" value={pair.b.profile} documents={documents} />
          <Policies label="both under" state="under" value={state.under ?? FIRST_TOUCH} pair={pair} />
        </>
      ) : (
        <>
          <Policies label="From" state="base" value={pair.a.policy.policy} pair={pair} />
          <Policies label="to" state="policy" value={pair.b.policy.policy} pair={pair} />
          {!several && (
            <span class="muted">
              Two profiles: <code>nodewise report A --against B --html FILE</code>
            </span>
          )}
        </>
      )}
    </div>
  );
}
