// Text within markup.

const NAMES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Escapes markup and removes characters that XML does not permit. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it takes out
export const asText = (text: string) => text.replace(/[&<>"\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, (c) => NAMES[c] ?? "");
