// A control to choose one of a few options; the choice is kept in the address.

import { update } from "./state";

export interface SegmentsProps {
  label: string;
  /** Key of the choice in the address. */
  state: string;
  value: string;
  options: readonly (readonly [value: string, title: string])[];
}

export function Segments({ label, state, value, options }: SegmentsProps) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([key, title]) => (
        <button type="button" key={key} aria-pressed={key === value} onClick={() => update({ [state]: key }, true)}>
          {title}
        </button>
      ))}
    </div>
  );
}
