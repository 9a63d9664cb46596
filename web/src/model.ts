// The report's data: what the Rust binary writes into the page, as types, and the one function that reads it.
// Everything in it is untrusted text. It is only checked as far as the page needs to stay standing: a missing
// list is an empty list, an unknown word is shown as it is. It derives nothing.

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
  /** that findings point at */
  plans: Plan[];
}

export interface Verdict {
  verdict: "found" | "healthy" | "undecided";
  culprit: string | null;
  headline: string;
  /** what the requests suffered */
  complaint: string | null;
  /** the degraded stretch in which causes are looked for */
  episode: Window | null;
  /** all of them, where there are several */
  episodes: Episode[];
  /** what a database still has to work off at the end */
  debt: Debt | null;
  /** how the causes hang together: contributors, the root, what follows */
  chain: ChainLink[];
  findings: Finding[];
  cleared: Cleared[];
  not_judged: NotJudged[];
  /** what will bind next; none if nothing stands out */
  next: Finding | null;
  /** what is set against the vendors' advice */
  notes: Note[];
  /** the load average, explained; none if it was not recorded */
  host_load: HostLoad | null;
  ledger: LedgerRow[];
  objectives: Objective[];
  /** what a search for the knee found; none if the load was none */
  search: Search | null;
  load: Load;
  coverage: Coverage[];
}

export interface Finding {
  cause: string;
  title: string;
  role: "root" | "contributor" | "symptom" | "next";
  /** the cause that it is a consequence of */
  follows_from?: string | null;
  /** of a contributor, the cause whose resource it asks more of */
  adds_to?: string | null;
  /** 0-1 */
  confidence: number;
  explains_ms: number | null;
  /** 0-1 */
  explains_ratio: number | null;
  evidence: Evidence[];
  fixes: Fix[];
  prove: string;
}

export interface Window {
  from_s: number;
  to_s: number;
}

/** A degraded stretch beside what was calm. */
export interface Episode extends Window {
  requests: number;
  response_ms: number;
  /** 0 without a calm stretch */
  calm_ms: number;
  /** causes are looked for in this one */
  judged: boolean;
}

/** Dead rows, vacuums under way, a checkpoint: a verification has to wait for them. */
export interface Debt {
  text: string;
  tables: TableDebt[];
  checkpoint: boolean;
  /** until the vacuums under way have been through; none where that is not known */
  seconds?: number | null;
}

export interface TableDebt {
  table: string;
  /** of a TOAST table the one whose values it holds */
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
  /** what would be so if it were absent */
  without: string;
}

/** How a server went about a statement. Figures and times are those of all plans of its shape. */
export interface Plan extends Window {
  kind: string;
  digest: string;
  digest_text: string;
  shape: string;
  seen: number;
  /** of those that were executed */
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
  /** how to keep it over a restart */
  keep?: string | null;
  risk?: string | null;
}

/** A setting that is not as a vendor advises. */
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
  idle_ratio: number;
  iowait_ratio: number;
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

/** What became of an objective. */
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

/** What a search for the knee found. Rates are requests per second. */
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

/** A figure with its interval of 95 %. */
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
  /** whether the service followed */
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
  /** that an objective ended the load early, which and when */
  aborted?: string | null;
}

export interface Validity {
  /** all of it in a phrase; null without a load */
  text: string | null;
  reasons: { text: string }[];
  fixes: Fix[];
  slices: Slice[];
}

/** A stretch of the load, and how far its generator may be trusted there. */
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
  response_ms: Quantiles;
  service_ms: Quantiles;
  send_lag_ms: Quantiles;
}

export interface Coverage {
  source: string;
  state: "complete" | "partial" | "absent";
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
  /** null is a gap: the source had nothing to say then */
  y: (number | null)[];
  style: "line" | "step" | "points";
}

export interface Comparison {
  before: string;
  after: string;
  rows: ComparisonRow[];
}

export interface ComparisonRow {
  indicator: string;
  unit: string;
  before: number | null;
  after: number | null;
  verdict: "better" | "worse" | "same" | "different" | "unclear";
}

type Loose = Record<string, unknown>;

const isObject = (v: unknown): v is Loose => typeof v === "object" && v !== null && !Array.isArray(v);
const object = (v: unknown): Loose => (isObject(v) ? v : {});
const list = <T>(v: unknown, each: (item: Loose) => unknown = (x) => x): T[] =>
  (Array.isArray(v) ? v.filter(isObject).map(each) : []) as T[];
const number = (v: unknown, otherwise: number): number => (typeof v === "number" && Number.isFinite(v) ? v : otherwise);

const evidenced = (item: Loose): Loose => ({ ...item, evidence: list(item.evidence, evidence), fixes: list(item.fixes) });

function span(value: unknown): Loose | null {
  const window = object(value);
  return typeof window.from_s === "number" && typeof window.to_s === "number" ? window : null;
}

const bounded = (item: Loose): boolean => span(item) !== null;

function debt(value: unknown): Loose | null {
  return isObject(value) ? { ...value, tables: list(value.tables) } : null;
}

const plan = (item: Loose): Loose => ({ ...item, nodes: list<Loose>(item.nodes, (n) => ({ ...n, depth: number(n.depth, 0) })) });

const evidence = (item: Loose): Loose => ({ ...item, labels: object(item.labels), window: span(item.window) });

const objective = (item: Loose): Loose => ({
  ...item,
  first_window: span(item.first_window),
  worst_window: span(item.worst_window),
  windows: number(item.windows, 0),
  windows_missed: number(item.windows_missed, 0),
});

function interval(value: unknown): Loose | null {
  const one = object(value);
  return ["value", "low", "high"].every((key) => Number.isFinite(one[key])) ? one : null;
}

const line = (value: unknown): unknown[] => list<Loose>(value).filter((p) => Number.isFinite(p.rate) && Number.isFinite(p.response_ms));

function search(value: unknown): Loose | null {
  if (!isObject(value)) return null;
  const rate = interval(object(value.breaking_point).rate);
  const step = (item: Loose): Loose => ({ ...item, offered: number(item.offered, 0), achieved: number(item.achieved, 0), held: item.held ?? "unclear" });
  return {
    ...value,
    knee: interval(value.knee),
    breaking_point: rate ? { ...object(value.breaking_point), rate } : null,
    curve: line(value.curve),
    usl: isObject(value.usl) ? { ...value.usl, curve: line(value.usl.curve) } : null,
    points: list(value.points, step),
    text: (Array.isArray(value.text) ? value.text : []).map(String),
  };
}

function series(item: Loose): Loose {
  const x = Array.isArray(item.x_s) ? item.x_s : [];
  const y = Array.isArray(item.y) ? item.y : [];
  return { ...item, x_s: x, y: x.map((_, i) => (typeof y[i] === "number" ? y[i] : null)) };
}

function validity(value: unknown): Loose {
  const v = object(value);
  return { ...v, reasons: list(v.reasons), fixes: list(v.fixes), slices: list<Loose>(v.slices).filter(bounded) };
}

const note = (item: Loose): Loose => ({ ...item, fix: isObject(item.fix) ? item.fix : null });

function hostLoad(value: unknown): Loose | null {
  if (!isObject(value)) return null;
  const averages = (Array.isArray(value.load_average) ? value.load_average : []).map((v) => number(v, 0));
  return { ...value, load_average: averages, parts: list<Loose>(value.parts, (p) => ({ ...p, threads: number(p.threads, 0) })) };
}

function verdict(value: unknown): Loose {
  const v = object(value);
  const load = object(v.load);
  return {
    ...v,
    episode: span(v.episode),
    episodes: list<Loose>(v.episodes).filter(bounded),
    debt: debt(v.debt),
    chain: list(v.chain),
    findings: list(v.findings, evidenced),
    cleared: list(v.cleared, evidenced),
    not_judged: list(v.not_judged),
    next: isObject(v.next) ? evidenced(v.next) : null,
    notes: list(v.notes, note),
    host_load: hostLoad(v.host_load),
    objectives: list(v.objectives, objective),
    search: search(v.search),
    ledger: list(v.ledger, (row) => ({ ...row, parts: list(row.parts) })),
    load: { ...load, operations: list(load.operations), validity: validity(load.validity), warm_up: object(load.warm_up) },
    coverage: list(v.coverage),
  };
}

function run(item: Loose): Loose {
  return {
    ...item,
    duration_s: number(item.duration_s, 0),
    verdict: verdict(item.verdict),
    phases: list(item.phases),
    charts: list(item.charts, (chart) => ({ ...chart, series: list(chart.series, series) })),
    plans: list(item.plans, plan),
  };
}

/** Reads the page's JSON. Throws an `Error` a person can act on when it is no report. */
export function readReport(text: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`the report's data is not JSON (${String(error)}); the file may be cut short`);
  }
  if (!isObject(value) || !Array.isArray(value.runs)) throw new Error("the report's data has no list of runs");
  const comparison = isObject(value.comparison) ? { ...value.comparison, rows: list(value.comparison.rows) } : null;
  return { ...value, runs: list(value.runs, run), comparison } as unknown as Report;
}
