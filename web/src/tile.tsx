// A figure in large type, with its name above and an explanation below.

import type { ComponentChildren } from "preact";
import type { Term as Key } from "./explain";
import { Term } from "./tip";

export interface TileProps {
  of: Key;
  title?: string;
  children: ComponentChildren;
  note?: ComponentChildren;
}

export function Tile({ of, title, children, note }: TileProps) {
  return (
    <div class="card tile">
      <dt>
        <Term of={of}>{title}</Term>
      </dt>
      <dd>{children}</dd>
      {note && <dd class="note">{note}</dd>}
    </div>
  );
}
