// All views, in the order of the menu.

import type { View } from "../view";
import { layout } from "./layout";
import { migrations } from "./migrations";
import { overview } from "./overview";
import { time } from "./time";

export const views: readonly View[] = [overview, layout, time, migrations];
