// All views, in the order of the menu.

import type { View } from "../view";
import { compare } from "./compare";
import { layout } from "./layout";
import { migrations } from "./migrations";
import { overview } from "./overview";
import { threads } from "./threads";
import { time } from "./time";

export const views: readonly View[] = [overview, layout, time, migrations, threads, compare];
