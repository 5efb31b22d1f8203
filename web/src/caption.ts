// The caption of saved pictures.

import { createContext } from "preact";

export interface CaptionText {
  /** Prefix of the names of saved files. */
  file: string;
  /** Line below a saved picture: program, machine, and version of nodewise. */
  line: string;
}

export const Caption = createContext<CaptionText>({ file: "nodewise", line: "nodewise" });
