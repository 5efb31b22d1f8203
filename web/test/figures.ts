// Figures as people and spreadsheets get them.

import cases from "../../crates/report/tests/figures.json";
import { csv } from "../src/export/csv";
import { asText } from "../src/export/escape";
import { andMore, between, bytes, count, digits, noun, pages, percent, ratio, seconds, whole } from "../src/format";
import { at } from "../src/value";
import { apart, difference, judge } from "../src/views/compare/difference";
import { stretches } from "../src/views/migrations/stretches";

let failed = 0;
const check = (what: string, found: unknown, expected: unknown) => {
  const [f, e] = [JSON.stringify(found), JSON.stringify(expected)];
  console.log(`${f === e ? "ok" : "FAILED"}: ${what}${f === e ? "" : `: ${f}, not ${e}`}`);
  if (f !== e) failed++;
};
const plain = (text: string) => text.replace(/\u00a0/g, " ");

// The terminal's report is held to the same file.
const write: Record<string, (n: number) => string> = { count, bytes, seconds, percent, ratio };
for (const [kind, pairs] of Object.entries(cases) as [string, [number, string][]][])
  check(
    `figures are written as in the terminal: ${kind}`,
    pairs.map(([n]) => plain(write[kind]!(n))),
    pairs.map(([, text]) => text),
  );
check("thousands are grouped", [whole(999), whole(1_234_567), pages(17, 24)], ["999", "1,234,567", "17–40"]);

check("a cell with a comma is quoted", csv([["a,b", 'say "x"', 1.5, null]]), '"a,b","say ""x""",1.5,\r\n');
check("a name is no formula", csv([["=1+1", "@x", "-1", -1]]), "'=1+1,'@x,'-1,-1\r\n");
check("markup is text, and no control character is left", asText('<img "x">&\u0000'), "&lt;img &quot;x&quot;&gt;&amp;");

const document = { a: [{ "b/c": 1, "~": null }] };
check("a pointer finds what it names", [at(document, "/a/0/b~1c"), at(document, "/a/0/~0")], [1, null]);
check("a pointer to nothing finds nothing", at(document, "/a/7/x") === undefined, true);

check(
  "shares differ by points, and never by none where they differ",
  [difference(0.1, 0.15, "percent"), difference(0.5, 0.5001, "percent"), difference(1, 0.0001, "percent")].map(plain),
  ["+5.0 points", "+0.1 points", "−99.9 points"],
);
check(
  "what a list leaves out is said with where it is",
  [andMore(0, "object", "zoom in"), andMore(1, "object", "zoom in"), andMore(1200, "thread", "x")].map(plain),
  ["", " and 1 more object (zoom in)", " and 1,200 more threads (x)"],
);
check(
  "nouns are as in the terminal",
  ["node", "access", "first touch", "copy", "array"].map((one) => [noun(1, one), noun(2, one)].join(" ")),
  ["node nodes", "access accesses", "first touch first touches", "copy copies", "array arrays"],
);
check("digits alone say all only of all", [0.125, 0.9997, 1, 0].map(digits), ["12.5", "99.9", "100.0", "0.0"]);
check(
  "better is as the metric has it",
  [judge(1, 2, "more"), judge(1, 2, "less"), judge(1, 1, "more"), judge(1, 2, "neither")],
  ["better", "worse", "same", "other"],
);

const bounds: [number, number, number][] = [
  [1, 1, 1],
  [0.04, 0.96, 0],
  [0.29, 1, 0.25],
  [0.319, 0.999, 0.25],
  [0, 0.612, 0],
  [0.101, 0.202, 0],
];
check(
  "what samples say of a share is said as the report says it",
  bounds.map(([low, high, least]) => plain(between([low, high], least))),
  ["100 %", "samples cannot say", "samples cannot say", "at least 31 %", "at most 62 %", "10 – 21 %"],
);
check(
  "of shares between bounds the larger is known where they lie apart",
  [apart([0.1, 0.5], [0.4, 1], "more"), apart([0.1, 0.3], [0.4, 1], "more"), apart([0.4, 1], [0.3, 0.3], "more")],
  [null, "better", "worse"],
);

const homes = [
  { page: 0, pages: 6, first: 0, last: 1 },
  { page: 6, pages: 2, first: 0, last: 2 },
  { page: 12, pages: 4, first: 3, last: 3 },
];
check("columns have the node of most pages", stretches(homes, "last", { base: 0, span: 16, columns: 4 }), [
  { from: 0, to: 2, node: 1 },
  { from: 3, to: 4, node: 3 },
]);
check("pages that did not move leave a gap", stretches(homes, "first", { base: 0, span: 16, columns: 16 }), [
  { from: 0, to: 8, node: 0 },
  { from: 12, to: 16, node: 3 },
]);
if (failed) throw new Error(`${failed} failed`);
