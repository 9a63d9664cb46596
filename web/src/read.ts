// Reads the report's data. Everything in it is untrusted text. It is checked only as far as the page needs in order not to
// fail: a missing list is empty, an unknown word is shown unchanged. It derives nothing.

import type { Report } from "./model.ts";

type Loose = Record<string, unknown>;

const isObject = (v: unknown): v is Loose => typeof v === "object" && v !== null && !Array.isArray(v);
const object = (v: unknown): Loose => (isObject(v) ? v : {});
const list = <T>(v: unknown, each: (item: Loose) => unknown = (x) => x): T[] =>
  (Array.isArray(v) ? v.filter(isObject).map(each) : []) as T[];
const number = (v: unknown, otherwise: number): number => (typeof v === "number" && Number.isFinite(v) ? v : otherwise);

const texts = (v: unknown): string[] => (Array.isArray(v) ? v.filter((text) => typeof text === "string") : []);

const compared = (c: Loose): Loose => ({
  columns: list(c.columns, (column) => ({ ...column, left_out: texts(column.left_out) })),
  rows: list(c.rows, (row) => ({ ...row, cells: list(row.cells) })),
  notes: texts(c.notes),
});

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
    dear: list(object(v.level).dear, (dear) => ({ ...dear, command: dear.command ?? null })),
    next: isObject(v.next) ? evidenced(v.next) : null,
    notes: list(v.notes, note),
    host_load: hostLoad(v.host_load),
    objectives: list(v.objectives, objective),
    search: search(v.search),
    ledger: list(v.ledger, (row) => ({ ...row, parts: list(row.parts) })),
    services: list(v.services),
    critical_path: list(v.critical_path, (path) => ({
      ...path, p99_ms: path.p99_ms ?? null, parts: list(path.parts, (part) => ({ ...part, saves_p99_ms: part.saves_p99_ms ?? null })),
    })),
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
    overview: list<Loose>(item.overview).filter((lane) => typeof lane.series === "number"),
    marks: list<Loose>(item.marks).filter((mark) => Number.isFinite(mark.at_s)),
    plans: list(item.plans, plan),
  };
}

/** Reads the page's JSON. Throws an `Error` with a useful message if it is not a report. */
export function readReport(text: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`the report's data is not JSON (${String(error)}); the file may be cut short`);
  }
  if (!isObject(value) || !Array.isArray(value.runs)) throw new Error("the report's data has no list of runs");
  const comparison = isObject(value.comparison) ? compared(value.comparison) : null;
  return { ...value, runs: list(value.runs, run), comparison } as unknown as Report;
}
