// What the documents hold. `Report` is the JSON of `nodewise report --json` (docs/report.md); the others are the page's
// own (crates/page). Fractions run from 0 to 1, times are seconds, sizes bytes, bandwidths MB/s.

export interface Session {
  version: string;
  /** Grows with every change of any document. */
  generation: number;
  /** Whether more may come. */
  live: boolean;
  /** One sentence for people: what is waited for, or why what is shown is older; absent in a file. */
  message?: string | null;
  profiles: { name: string; folder: string }[];
}

export interface Verdict {
  outcome: "place" | "stock" | "match" | "leave-alone" | "not-memory-bound" | "undecided" | "unknown";
  policy: string;
  sentence: string;
  next: string | null;
  /** What is to be done after that, or instead, in words. */
  then: string | null;
  reasons: string[];
}

export interface Policy {
  policy: string;
  application_exclusivity: number;
  page_balance: number;
  access_balance: number | null;
  access_balance_as_printed: number | null;
  /** Of samples their share, which is not that of the accesses. */
  local_fraction: number;
  /** Of samples: what they say of the accesses. */
  local_range: [number, number] | null;
  /** What another run is expected to keep. */
  other_runs: OtherRuns | null;
  migrations: number;
  seconds: number | null;
  seconds_range: [number, number] | null;
  speedup: number | null;
  speedup_range: [number, number] | null;
}

export interface OtherRuns {
  by_number: number;
  by_data: number;
  mapped_by_number: number;
  mapped_by_data: number;
}

/** Which threads take which parts in other runs. */
export interface Roles {
  assignment: "fixed" | "arrival" | "dynamic";
  other_runs: number;
  by_number: number;
  by_data: number;
  by_chance: number;
  in_parts: number;
  loops: { function: string; site: string; schedule: string; share: number; advice: string }[];
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
  /** How often it was allocated, freed in between. */
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
  /** What it is to its first page. */
  kind: MoveKind;
  to_count: number;
  home_count: number | null;
  against: number;
}

/** Tao et al., Table 1: a page's first move, one back to the node just left, one on to yet another node. */
export type MoveKind = "first" | "ping-pong" | "multiple";

export interface Moves {
  /** The policy that would have made them; null: they were recorded. */
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
  objects: ReportObject[];
  /** Waiting, and variables that all threads use. */
  few_lines: { object: string | null; pages: number; share: number }[];
  slices: Slice[];
  dynamicity: { migrations: number; pages_by_moves: number[] };
  roles: Roles | null;
  moves: Moves | null;
  migrations: Migration[];
  notes: string[];
}

/** The machine as a graph, and what each policy puts on it. */
export interface Machine {
  /** Where nodes stand, in units of half the picture: -1 to 1, y downwards. */
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
  /** Cells of a whole tile: 256. */
  cells: number;
  /** The finest level there is: a cell of level L stands for 2^L pages. 0 unless a file had to leave pages out. */
  finest: number;
  /** The level at which one tile holds everything. */
  coarsest: number;
  nodes: number;
  /** Policies whose mapping tiles have, the first is first-touch (today's mapping); in the report's order. */
  policies: string[];
  /** Sharing classes by the number that tiles use. */
  classes: string[];
  /** Runs in order of position; `object` is the index in the report's `objects`, or -1. */
  objects: { object: number; name: string; first: number; pages: number; address: string }[];
  /** Thread numbers, as people know them, by the thread index that details use; the node of each. */
  threads: { numbers: number[]; nodes: number[] };
}

/** Who shares with whom, by group of threads (at most 128 groups). */
export interface Threads {
  groups: { threads: number[]; label: string }[];
  /** Of each page, what the lesser of two groups accesses, summed, `[group][group]`, symmetric; on the diagonal
   *  accesses to pages that no other group uses. */
  sharing: number[][];
  /** As threads are placed; in the order of their numbers where sharing placed them already. */
  before: Placing;
  /** As sharing would place them, with the policy that is recommended. */
  after: Placing;
}

export interface Placing {
  affinity: string;
  /** Policy whose mapping the traffic holds for. */
  policy: string;
  /** Node of each group. */
  nodes: number[];
  /** Groups of threads that belong together: indices of groups. */
  clusters: number[][];
  /** Accesses, `[cpu_node][memory_node]`. */
  accesses: number[][];
  local_fraction: number;
  /** Of samples: what they say of the accesses. */
  local_range: [number, number] | null;
}
