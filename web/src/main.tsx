// Entry point: finds the source of the documents, and renders the page.

import "./page.css";
import { render } from "preact";
import { embedded } from "./embedded";
import { served } from "./served";
import { Page } from "./page";
import { startTheme } from "./theme";

const held = document.getElementById("documents");
const root = document.getElementById("page") ?? document.body.appendChild(document.createElement("div"));

startTheme();
render(<Page open={() => (held ? embedded(held) : Promise.resolve(served))} />, root);
