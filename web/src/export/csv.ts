// Tables for spreadsheets (RFC 4180).

export type Row = readonly (string | number | boolean | null | undefined)[];

/** Text that begins like a formula is prefixed with a quote, so that spreadsheets do not evaluate it. */
const inert = (text: string) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);

function cell(value: Row[number]): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" ? inert(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export const csv = (rows: readonly Row[]) => rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
