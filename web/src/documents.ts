// Types of the documents. `Report` is the JSON of `nodewise report --json` (docs/report.md); the others are made for
// the page (crates/page). Fractions are from 0 to 1, times in seconds, sizes in bytes, bandwidths in MB/s.

export interface Session {
  version: string;
  /** Grows with every change of any document. */
  generation: number;
  /** Whether documents may still change. */
  live: boolean;
  /** A message in one sentence: what the server waits for, or why documents are outdated; absent in a file. */
  message?: string | null;
  profiles: { name: string; folder: string }[];
}

export interface Verdict {
  outcome: "place" | "stock" | "match" | "leave-alone" | "not-memory-bound" | "undecided" | "unknown";
  policy: string;
  sentence: string;
  next: string | null;
  /** The step after the command, or instead of it, in words. */
  then: string | null;
  reasons: string[];
}

export interface Policy {
  policy: string;
  application_exclusivity: number;
  page_balance: number;
  access_balance: number | null;
  access_balance_as_printed: number | null;
  /** If accesses are samples, this is the share of samples, which differs from that of the accesses. */
  local_fraction: number;
  /** Bounds of the share of local accesses, if accesses are samples. */
  local_range: [number, number] | null;
  /** Local fractions that are expected in another run. */
  other_runs: OtherRuns | null;
  migrations: number;
  seconds: number | null;
  seconds_range: [number, number] | null;
  speedup: number | null;
  speedup_range: [number, number] | null;
  /** What it copies, if it makes copies. */
  copies?: { sentence: string };
}

export interface OtherRuns {
  by_number: number;
  by_data: number;
  mapped_by_number: number;
  mapped_by_data: number;
}

/** How the threads of other runs take the parts of the data. */
export interface Roles {
  assignment: "fixed" | "arrival" | "dynamic";
  other_runs: number;
  by_number: number;
  by_data: number;
  by_chance: number;
  in_parts: number;
  loops: { function: string; site: string; schedule: string; share: number; advice: string }[];
  static_schedule: string | null;
  not_followed: "openmp" | "too-many-pages" | "not-written" | null;
  not_followed_sentence: string | null;
  sentence: string;
}

export interface Division {
  region: string;
  site: string;
  pattern: string;
  repeat: number;
  inverse: boolean;
  explained: number;
  share: number;
  read_fraction: number;
  threads: number;
  doubt: string | null;
  schedule: string | null;
}

export interface ReportObject {
  name: string;
  kind: string;
  site: string;
  bytes: number;
  /** Number of allocations that were merged into this object, each freed before the next. */
  allocations: number;
  pages: number;
  accesses: number;
  read_fraction: number | null;
  cost_share: number | null;
  exclusivity: number;
  sampled: { pages: number; judged: number; range: [number, number] | null } | null;
  local_fraction: number;
  local_range: [number, number] | null;
  sharing: string;
  pattern: string;
  patterns: Division[];
  uniform_sharing: { share: number; share_in_order: number; remedy: string | null } | null;
  distribution: string | null;
  first_touch: { site: string; threads: number; largest_share: number } | null;
  used_by: { site: string; threads: number; share: number } | null;
  blame: string;
  advice: string;
  snippet: string | null;
}

export interface Slice {
  start_seconds: number;
  end_seconds: number;
  accesses: number;
  exclusivity: number;
  local_fraction: number;
  local_range: [number, number] | null;
  access_balance: number | null;
  migrations: number;
}

export interface Migration {
  seconds: number;
  object: string;
  page: number;
  pages: number;
  from: number;
  to: number;
  by: string;
  /** Kind of the move for the first page of the run. */
  kind: MoveKind;
  to_count: number;
  home_count: number | null;
  against: number;
}

/** Tao et al., Table 1: a page's first move, one back to the node just left, one on to yet another node. */
export type MoveKind = "first" | "ping-pong" | "multiple";

export interface Moves {
  /** The simulated policy that would have made the moves; null if they were recorded. */
  simulated: string | null;
  pages: number;
  local_fraction: number | null;
  local_range: [number, number] | null;
  ours: number;
  kernel: number;
  others: number;
  kernel_counted: number | null;
  ping_pongs: number;
  multiple: number;
  incorrect: number | null;
  by: { by: string; pages: number }[];
  held_back: { cause: string; pages: number }[];
  matrix: number[][];
  kernel_matrix: number[][];
  others_matrix: number[][];
  pages_by_moves: number[];
  objects: {
    name: string;
    pages: number;
    of_pages: number;
    ours: number;
    kernel: number;
    others: number;
    ping_pongs: number;
    multiple: number;
    homes: { page: number; pages: number; first: number; last: number }[];
  }[];
  over_time: { start_seconds: number; end_seconds: number; from: number; to: number; ours: number; kernel: number; others: number }[];
  journeys: {
    object: string;
    page: number;
    pages: number;
    stays: { seconds: number; node: number; by: string | null; kind: MoveKind | null }[];
  }[];
}

export interface Report {
  schema: number;
  nodewise: string;
  verdict: Verdict;
  program: {
    command: string[];
    threads: number;
    started_at: number;
    wall_seconds: number;
    plain_wall_seconds: number | null;
    observer: string;
    exact: boolean;
    loop_schedule: string | null;
    slicing: string;
    exit_status: number | null;
    truncated: string | null;
    host: { model: string; cpus: number; nodes: number };
  };
  coverage: {
    share: number | null;
    samples: number;
    instrumented: number;
    waiting: number;
    missed: number;
    kernel: number;
    missed_modules: { name: string; share: number }[];
  };
  sampling: Record<string, unknown> | null;
  machine: {
    name: string;
    title: string;
    nodes: { cpus: number; memory: number; bandwidth: number }[];
    numa_factor: number;
    latency_ns: number[][];
    sources: { field: string; text: string; assumed: boolean }[];
  };
  affinity: { name: string; thread_nodes: number[] };
  page_size: number;
  totals: { pages: number; reads: number; writes: number; accesses: number };
  application_exclusivity: number;
  sharing: { class: string; pages: number; accesses: number }[];
  policies: Policy[];
  /** Policies that copy what is only read; no page map shows them. */
  copies: Policy[];
  objects: ReportObject[];
  /** Objects whose accesses go to a few cache lines: waiting threads, and variables that all threads use. */
  few_lines: { object: string | null; pages: number; share: number }[];
  slices: Slice[];
  dynamicity: { migrations: number; pages_by_moves: number[] };
  roles: Roles | null;
  moves: Moves | null;
  migrations: Migration[];
  notes: string[];
}

/** The machine as a graph, and the load under each policy. */
export interface Machine {
  /** Positions of nodes, in units of half the picture: -1 to 1, y downwards. */
  places: { x: number; y: number }[];
  /** Directed links; empty where the machine's are unknown. */
  links: { from: number; to: number; bandwidth: number }[];
  /** In the order of the report's policies. */
  policies: {
    policy: string;
    /** Accesses, `[cpu_node][memory_node]`. */
    accesses: number[][];
    /** Per link: bytes, and share of its bandwidth; empty where accesses are samples or links unknown. */
    links: { bytes: number; utilization: number }[];
    controllers: { bytes: number; utilization: number }[];
  }[];
}

/** The address space as one strip: touched pages, object after object. A page's *position* counts from 0. */
export interface Strip {
  pages: number;
  /** Number of cells of a whole tile: 256. */
  cells: number;
  /** The finest available level; a cell of level L stands for 2^L pages. 0 unless a page file omits finer levels. */
  finest: number;
  /** The level at which one tile covers all pages. */
  coarsest: number;
  nodes: number;
  /** Policies whose mapping tiles have, the first is first-touch (today's mapping); in the report's order. */
  policies: string[];
  /** Sharing classes by the number that tiles use. */
  classes: string[];
  /** Runs in order of position; `object` is the index in the report's `objects`, or -1. */
  objects: { object: number; name: string; first: number; pages: number; address: string }[];
  /** Thread number and node of each thread, by the thread index that details use. */
  threads: { numbers: number[]; nodes: number[] };
}

/** Sharing between groups of threads (at most 128 groups). */
export interface Threads {
  groups: { threads: number[]; label: string }[];
  /** `[group][group]`, symmetric: the sum over pages of the smaller of both groups' accesses. The diagonal contains
   *  accesses to pages that no other group uses. */
  sharing: number[][];
  /** Threads in order of their numbers, if the report itself assumes threads that are placed by sharing. */
  in_order: Assignment | null;
  /** The baseline of the report. */
  before: Placing;
  /** The sharing-aware assignment, with the recommended policy. */
  after: Placing;
}

/** Groups of threads on nodes. */
export interface Assignment {
  affinity: string;
  /** Node of each group. */
  nodes: number[];
  /** Clusters of groups that should be on one node, as indices of groups. */
  clusters: number[][];
}

export interface Placing extends Assignment {
  /** Policy under whose mapping the traffic was computed. */
  policy: string;
  /** Accesses, `[cpu_node][memory_node]`. */
  accesses: number[][];
  local_fraction: number;
  /** Bounds of the share of local accesses, if accesses are samples. */
  local_range: [number, number] | null;
}
