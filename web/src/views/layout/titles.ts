// Titles of the strips, by colour mode.

import type { Mode } from "../../paint/strips";
import type { Scene } from "./scene";

const OBSERVED: Record<Mode, string> = {
  node: "users by node",
  local: "accesses/page",
  class: "sharing class",
  accesses: "accesses/page",
  exclusivity: "exclusivity",
};
const MAPPED: Record<Mode, string> = {
  node: "home",
  local: "local",
  class: "home",
  accesses: "remote",
  exclusivity: "local",
};

export function titles({ look, strip }: Scene): ["overview" | "observed" | "today" | "chosen", string, string][] {
  return [
    ["overview", "whole", ""],
    ["observed", "observed", OBSERVED[look.mode]],
    ["today", strip.policies[0] ?? "today", `${MAPPED[look.mode]} today`],
    ["chosen", strip.policies[look.chosen] ?? "", `${MAPPED[look.mode]} chosen`],
  ];
}
