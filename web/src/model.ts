// The report's data: what the Rust binary writes into the page, as types. read.ts reads it.

export interface Report {
  holdup: string;
  title: string;
  runs: Run[];
  comparison: Comparison | null;
}

export interface Run {
  name: string;
  started_at: string;
  duration_s: number;
  verdict: Verdict;
  phases: Phase[];
  charts: Chart[];
  /** the whole run in one picture */
  overview: Lane[];
  /** restarts, kills, failed probes, drawn across all charts */
  marks: Mark[];
  /** plans that findings point at */
  plans: Plan[];
}

export interface Verdict {
  verdict: "found" | "healthy" | "undecided";
  culprit: string | null;
  headline: string;
  /** the symptom: how the requests suffered */
  symptom: string | null;
  /** the episode whose causes are judged */
  episode: Window | null;
  /** all episodes, if there are several */
  episodes: Episode[];
  /** the work that a database still has at the end */
  debt: Debt | null;
  /** how the causes are linked: contributors, the root, its consequences */
  chain: ChainLink[];
  findings: Finding[];
  cleared: Cleared[];
  not_judged: NotJudged[];
  /** what is dear at its level, where nothing says whether response time is good */
  dear: Dear[];
  /** the next limit; none if nothing stands out */
  next: Finding | null;
  /** settings that differ from the vendors' advice */
  notes: Note[];
  /** the load average, explained; none if it was not recorded */
  host_load: HostLoad | null;
  ledger: LedgerRow[];
  /** the services of traced requests, those whose own time grew most first; empty without traces */
  services: Service[];
  /** what a fix of each part of an operation gives back, by traced requests */
  critical_path: CriticalPath[];
  objectives: Objective[];
  /** what a search for the knee found; none if the load was not a search */
  search: Search | null;
  load: Load;
  coverage: Coverage[];
}

/** Work that an answer does not need. */
export interface Dear {
  cause: string;
  text: string;
  command: string | null;
}

/** One service by traces, per mean request. What no baseline window shows is null. */
export interface Service {
  service: string;
  /** on the critical path, with the way to it and its calls of databases */
  own_ms: number;
  own_before_ms: number | null;
  /** the parts of it between a call and its answer, and in databases, caches and queues */
  way_ms: number;
  stores_ms: number;
  calls: number;
  calls_before: number | null;
  /** failures that began in it, as a share (0-1) of the requests */
  errors: number;
  errors_before: number | null;
}

export interface Finding {
  cause: string;
  title: string;
  role: "root" | "contributor" | "symptom" | "next";
  /** the cause it follows from */
  follows_from?: string | null;
  /** for a contributor, the cause whose resource it uses up further */
  adds_to?: string | null;
  /** 0-1 */
  confidence: number;
  explains_ms: number | null;
  /** 0-1 */
  explains_ratio: number | null;
  /** how much of the harm it accounts for where no source measured response time */
  share?: { ratio: number; of: string } | null;
  evidence: Evidence[];
  fixes: Fix[];
  prove: string;
}

export interface Window {
  from_s: number;
  to_s: number;
}

/** An episode, beside the baseline window. */
export interface Episode extends Window {
  requests: number;
  response_ms: number;
  /** mean response in the baseline window; 0 if there is none */
  baseline_ms: number;
  /** whether its causes are judged */
  judged: boolean;
}

/** Dead rows, vacuums under way, a checkpoint: measure a fix after them. */
export interface Debt {
  text: string;
  tables: TableDebt[];
  checkpoint: boolean;
  /** time until the running vacuums have finished; none if unknown */
  seconds?: number | null;
}

export interface TableDebt {
  table: string;
  /** for a TOAST table, the table whose values it holds */
  toast_of?: string | null;
  dead_rows: number;
  /** dead rows at which vacuum begins */
  fires_at_rows: number;
  made_per_second: number;
  under_way: boolean;
}

export interface ChainLink {
  cause: string;
  role: Finding["role"];
  /** another cause, or `latency` */
  leads_to: string;
  /** what would change without it */
  without: string;
}

/** How a server executed a statement. Figures and times cover all plans of its shape. */
export interface Plan extends Window {
  kind: string;
  digest: string;
  digest_text: string;
  shape: string;
  seen: number;
  /** median of the executed ones */
  median_ms: number | null;
  nodes: PlanNode[];
}

export interface PlanNode {
  depth: number;
  name: string;
  rows_estimated: number | null;
  rows_actual: number | null;
  loops: number | null;
}

export interface Evidence {
  table: string;
  column: string;
  labels: Record<string, string>;
  window: Window | null;
  observed: string | number | null;
  expected: string | number | null;
  text: string;
  /** id of the chart that shows it */
  chart: string | null;
}

export interface Fix {
  text: string;
  command?: string | null;
  /** how to keep it across a restart */
  keep?: string | null;
  risk?: string | null;
}

/** A setting that differs from a vendor's advice. */
export interface Note {
  check: string;
  vendor: string;
  subject: string;
  observed: string;
  advised: string;
  text: string;
  /** the finding that shows that it matters */
  finding?: string | null;
  fix?: Fix | null;
  reference: string;
}

export interface HostLoad {
  text: string;
  /** over 1, 5 and 15 minutes, at the end */
  load_average: number[];
  load_1m_start: number;
  load_1m_max: number;
  cpus: number;
  idle_ratio: number | null;
  iowait_ratio: number | null;
  runnable: number;
  uninterruptible: number;
  reconstructed_1m: number;
  parts: HostLoadPart[];
}

/** Threads at one place in the kernel. */
export interface HostLoadPart {
  process: string;
  state: string;
  wchan: string | null;
  threads: number;
}

export interface Cleared {
  cause: string;
  title: string;
  evidence: Evidence[];
}

export interface NotJudged {
  cause: string;
  title: string;
  missing: string;
  enable: string;
}

export interface LedgerRow {
  operation: string;
  band: string;
  response_ms: number;
  parts: LedgerPart[];
  /** response less the parts; negative when the parts overlap */
  residual_ms: number;
}

export interface LedgerPart {
  part: string;
  ms: number;
  error_ms: number;
}

export interface Quantiles {
  mean: number | null;
  p50: number | null;
  p90: number | null;
  p95: number | null;
  p99: number | null;
  p999: number | null;
  max: number | null;
}

/** The result of an objective. */
export interface Objective {
  text: string;
  state: "met" | "missed" | "not_judged";
  /** over the whole run, or in the worst window */
  value: number | null;
  unit: "ms" | "ratio" | "per_second";
  first_window: Window | null;
  worst_window: Window | null;
  windows: number;
  windows_missed: number;
  /** how it was missed, or why it was not judged */
  why: string | null;
}

/** The result of a search for the knee. Rates are requests per second. */
export interface Search {
  knee: Interval | null;
  breaking_point: { rate: Interval; how: string } | null;
  /** the fitted curve of mean response time */
  curve: LinePoint[];
  usl: { determined: boolean; curve: LinePoint[] } | null;
  refused: string | null;
  points: Step[];
  /** all of it in sentences */
  text: string[];
}

/** A figure with its 95 % interval. */
export interface Interval {
  value: number;
  low: number;
  high: number;
}

export interface LinePoint {
  rate: number;
  response_ms: number;
}

/** One step of a search. */
export interface Step {
  from_s: number;
  purpose: string;
  offered: number;
  achieved: number;
  mean_ms: number | null;
  p99_ms: number | null;
  /** 0-1 */
  error_ratio: number;
  in_system: number;
  /** whether the service kept up */
  held: "yes" | "no" | "unclear" | "generator_limited";
  how: string | null;
}

export interface Load {
  /** null without a load */
  model: "open" | "closed" | null;
  protocol: string | null;
  loops: number;
  shard: string | null;
  validity: Validity;
  warm_up: { seconds: number; text: string | null };
  operations: LoadOperation[];
  generator_limited: boolean;
  /** the objective that ended the load early, and when */
  aborted?: string | null;
}

export interface Validity {
  /** the validity in a phrase; null without a load */
  text: string | null;
  reasons: { text: string }[];
  fixes: Fix[];
  slices: Slice[];
}

/** A window of the load, and whether its figures are valid there. */
export interface Slice {
  from_s: number;
  to_s: number;
  label: "valid" | "capped" | "generator_limited" | "not_judged" | "warm_up" | "episode" | "episode_judged";
}

export interface LoadOperation {
  operation: string;
  /** requests per second */
  offered: number;
  /** requests per second */
  achieved: number;
  errors: number;
  /** in words, e.g. `60 of 60: 404`; none if no request failed, or from an older holdup */
  failed?: string | null;
  response_ms: Quantiles;
  service_ms: Quantiles;
  send_lag_ms: Quantiles;
}

/** An operation and the critical path of its traced requests. Times are of a mean request, milliseconds. */
export interface CriticalPath {
  operation: string;
  service: string;
  requests: number;
  mean_ms: number;
  /** none of fewer than a hundred requests */
  p99_ms: number | null;
  /** longest first */
  parts: PathPart[];
}

export interface PathPart {
  part: string;
  /** the statement, the downstream service, or the name of the span */
  what: string;
  service: string;
  ms: number;
  /** the part of it that is on the critical path */
  path_ms: number;
  /** how much less time it takes if it takes half */
  faster_ms: number;
  /** how much of the mean that gives back */
  saves_ms: number;
  saves_p99_ms: number | null;
}

export interface Coverage {
  source: string;
  state: "complete" | "partial" | "absent" | "failed";
  why: string | null;
  enable: string | null;
  /** share of one core, 0-1 */
  cpu_ratio: number | null;
}

export interface Phase {
  name: string;
  from_s: number;
  to_s: number;
  rate_from: number | null;
  rate_to: number | null;
}

export interface Chart {
  id: string;
  title: string;
  unit: string;
  /** starts on a logarithmic scale */
  log: boolean;
  series: Series[];
}

export interface Series {
  name: string;
  x_s: number[];
  /** null is a gap: the source reported nothing */
  y: (number | null)[];
  style: "line" | "step" | "points";
}

/** A series of a chart, and the series of the same chart that is its limit. */
export interface Lane {
  title: string;
  chart: string;
  series: number;
  limit: number | null;
  is_bad: boolean;
}

export interface Mark {
  at_s: number;
  kind: string;
  text: string;
  is_bad: boolean;
}

/** Recordings side by side; the first column is the baseline. */
export interface Comparison {
  columns: ComparisonColumn[];
  rows: ComparisonRow[];
  notes: string[];
}

export interface ComparisonColumn {
  name: string;
  left_out: string[];
  verdict: string | null;
  headline: string | null;
}

export interface ComparisonRow {
  section: string;
  indicator: string;
  unit: string;
  is_headline: boolean;
  cells: ComparisonCell[];
}

export interface ComparisonCell {
  value: number | null;
  /** whether the value is the least that it can be: a request got no answer */
  is_least?: boolean;
  against: Against | null;
}

export interface Against {
  verdict: "better" | "worse" | "different" | "no_difference" | "cant_tell" | "not_comparable" | "missing";
  difference: number | null;
  /** value over the baseline's, minus 1; null if a ratio is meaningless, then low and high belong to the difference */
  change_ratio: number | null;
  low: number | null;
  high: number | null;
  why: string | null;
  repeats_wanted: number | null;
}
