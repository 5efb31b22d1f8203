// The layout as a table: each cell in view once.

import type { Row } from "../../export/csv";
import { runAt } from "../../paint/bands";
import { NO_ACCESS } from "../../paint/cells";
import type { Scene } from "./scene";

export function table({ shown, strip, look }: Scene, unit: string): Row[] {
  const chosen = strip.policies[look.chosen] ?? "chosen";
  const of = unit === "samples" ? " of samples" : "";
  const rows: Row[] = [
    [
      "first position",
      "pages",
      "object",
      unit,
      "write share",
      "dominant node",
      `exclusivity${of}`,
      "sharing",
      "home today",
      `local share today${of}`,
      `home ${chosen}`,
      `local share ${chosen}${of}`,
    ],
  ];
  let last = "";
  shown?.cells.pieces.forEach((piece, x) => {
    const c = shown.cells.cells[x]!;
    if (!piece || last === `${piece.level} ${piece.first + c}`) return;
    last = `${piece.level} ${piece.first + c}`;
    const first = (piece.first + c) * 2 ** piece.level;
    const [today, then] = [piece.homes[0], piece.homes[look.chosen]];
    const share = (of: Uint8Array | undefined) => (of ? +(of[c]! / 255).toFixed(4) : null);
    const used = piece.dominant[c] !== NO_ACCESS;
    rows.push([
      first,
      Math.min(2 ** piece.level, strip.pages - first),
      strip.objects[runAt(strip.objects, first)]?.name,
      piece.accesses[c],
      used ? share(piece.writes) : null,
      used ? piece.dominant[c] : null,
      used ? share(piece.exclusivity) : null,
      strip.classes[piece.sharing[c]!],
      today?.node[c],
      used ? share(today?.local) : null,
      then?.node[c],
      used ? share(then?.local) : null,
    ]);
  });
  return rows;
}
