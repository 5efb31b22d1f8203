// All views, in the order of the menu.

import type { View } from "../view";

export const views: readonly View[] = [];
