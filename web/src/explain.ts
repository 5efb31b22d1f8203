// Explanations of metrics in a sentence or two, with unit and source. They are shown wherever a metric is named.

export interface Explanation {
  name: string;
  unit: string;
  text: string;
  /** Source of the definition, or how the figure is obtained. */
  source: string;
}

const entry = (name: string, unit: string, text: string, source: string): Explanation => ({ name, unit, text, source });

export const EXPLAIN = {
  local_fraction: entry(
    "Local accesses",
    "share of accesses",
    "Loads and stores served by memory of the accessing thread’s own node. Whatever is left crosses the machine, which is slower.",
    "counted: who accessed a page, and where the policy puts it",
  ),
  local_samples: entry(
    "Local accesses, by samples",
    "share of accesses, between bounds",
    "What the samples say of the share of accesses from the page’s own node: a page is seen once a scan, by whoever uses it first, so a share of samples is no share of accesses. Where the bounds leave everything open, it is said so.",
    "bounds at 95 %: √n independent samples, one worth up to 32 accesses of another node’s, anything possible of pages that were not sampled",
  ),
  exclusivity: entry(
    "Exclusivity",
    "share of accesses",
    "Accesses that come from the node that uses their page most. No placement of pages can make more of them local; near 1/nodes everybody uses everything.",
    "Diener et al., equation 2",
  ),
  access_balance: entry(
    "Access balance",
    "100 % is even, 0 % is all on one node",
    "How evenly the memory controllers are used: one less the gap between the busiest and the idlest node over all accesses.",
    "Diener et al., equation 5, by the node that holds the page",
  ),
  page_balance: entry(
    "Page balance",
    "100 % is even, 0 % is all on one node",
    "How evenly pages are spread over the nodes’ memories, however often they are used.",
    "Diener et al., equation 3",
  ),
  pages: entry(
    "Pages",
    "pages",
    "Pieces of memory that were touched at least once: the unit in which the kernel places memory.",
    "counted",
  ),
  accesses: entry(
    "Accesses",
    "loads and stores",
    "Memory instructions as executed; caches serve many of them.",
    "counted exactly, or samples where the page says so",
  ),
  threads: entry(
    "Threads",
    "threads",
    "Threads that accessed memory, and the rule by which they are put on nodes.",
    "recorded; --affinity",
  ),
  wall: entry("Recorded", "wall time", "How long the recorded run took, counters included: no measure for the predictions.", "recorded"),
  seconds: entry(
    "Predicted time",
    "wall time",
    "What the run would take under this policy: the bar is the typical value, the line across its end the plausible range. Ranges of policies overlap because they share what is not known; the speed-up compares like with like.",
    "the model: traffic routed over the machine’s links, calibrated by the recorded run",
  ),
  speedup: entry(
    "Speed-up",
    "predicted time of first-touch over this policy’s",
    "Above 1 is faster than today. The range below it holds what is plausible.",
    "the model",
  ),
  migrations: entry("Pages moved", "pages", "Pages whose home under this policy is not the node that touched them first.", "counted"),
  cost: entry(
    "Cost",
    "share of the run time",
    "What an object accounts for of the run time that the best placement is predicted to save; the costs of all objects add up to that.",
    "the model, divided by the time accesses spend on distance and in queues",
  ),
  sharing: entry(
    "Sharing",
    "class of most accesses",
    "Private: stacks and the like. Non-shared: one thread. Node-shared: threads of one node. Uniformly shared: threads of several nodes.",
    "Majo & Gross; Diener et al.",
  ),
  pattern: entry(
    "Pattern",
    "how threads divide the object",
    "x-wise: one block a thread. y-wise: blocks that begin again in each row. Strided: dealt in turn. Uniform: everybody everywhere.",
    "found from who touches which page",
  ),
  utilization: entry(
    "Use of a link or controller",
    "share of its bandwidth",
    "Bytes that would cross it in the predicted time, over what it can carry. From about 70 % on accesses queue.",
    "the model, by 64-byte lines",
  ),
  moved: entry(
    "Moved pages",
    "pages of 4 KiB",
    "Pages that changed their node while the program ran, each once.",
    "move by move: recorded, or simulated where the view says so",
  ),
  ours: entry(
    "Our moves",
    "pages, once a move",
    "Moves by nodewise’s migration policies.",
    "move by move: recorded, or simulated where the view says so",
  ),
  kernel: entry(
    "The kernel’s moves",
    "pages, once a move",
    "Moves by the kernel’s own balancing, as far as they were seen page by page.",
    "seen between two scans",
  ),
  others: entry(
    "Moves by others",
    "pages, once a move",
    "Pages found on another node that neither we nor, by its own count, the kernel had moved: another program did, or it is new memory at the same address.",
    "seen between two scans",
  ),
  ping_pong: entry(
    "Ping-pong",
    "moves",
    "Moves back to the node that the page had just left: two moves for nothing, unless the use changed in between.",
    "Tao et al., Table 1",
  ),
  multiple: entry("Multiple", "moves", "Second and later moves of a page to yet another node.", "Tao et al., Table 1"),
  incorrect: entry(
    "Incorrect",
    "moves",
    "Moves from the node that used the page most. Known only where the policy saw the accesses of the page’s own node.",
    "Tao et al., Table 1",
  ),
  held_back: entry(
    "Held back",
    "pages",
    "Moves that a policy wanted and that were not made, by what stopped them: budget, rate, rest, too few samples.",
    "recorded",
  ),
} as const satisfies Record<string, Explanation>;

export type Term = keyof typeof EXPLAIN;
