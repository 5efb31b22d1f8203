// What a picture says about itself once it has left the page.

import { createContext } from "preact";

export interface CaptionText {
  /** Begins the names of saved files. */
  file: string;
  /** Below a saved picture: the program, the machine, who drew it. */
  line: string;
}

export const Caption = createContext<CaptionText>({ file: "nodewise", line: "nodewise" });
