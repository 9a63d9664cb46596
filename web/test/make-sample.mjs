// Writes sample.json: a made-up but plausible demo, the model's fixture. Seeded, so that it comes out the same.
import { writeFileSync } from "node:fs";

let seed = 7;
const rnd = () => ((seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648);
const jitter = (v, r) => Math.round(v * (1 + (rnd() - 0.5) * 2 * r) * 1000) / 1000;
const N = 60, SPAN = 15;
const xs = Array.from({ length: N }, (_, i) => Math.round((i + 0.5) * (SPAN / N) * 1000) / 1000);
const rate = (t) => [60, 120, 180, 240, 240][Math.min(4, Math.floor(t / 3))];
const phases = [60, 120, 180, 240].map((r, i) => ({ name: ["warm up", "step 1", "step 2", "past the knee"][i], from_s: i * 3, to_s: i === 3 ? SPAN : (i + 1) * 3, rate_from: r, rate_to: r }));
const series = (name, f, style = "line") => ({ name, x_s: xs, y: xs.map((t) => f(t)), style });
const q = (p50, p90, p99, p999, max) => ({ mean: (p50 + p90) / 2, p50, p90, p95: (p90 + p99) / 2, p99, p999, max });

function charts(bad) {
  const over = (t) => (bad && t > 6 ? (t - 6) / 9 : 0);
  const cap = bad ? 158 : 1e9;
  const lat = (base, worst, r) => (t) => (t > 10.6 && t < 11.3 && bad ? null : jitter(base + over(t) * worst, r));
  return [
    { id: "rate", title: "Offered and achieved rate", unit: "requests/s", log: false, series: [series("offered", rate, "step"), series("achieved", (t) => jitter(Math.min(rate(t), cap), 0.04)), series("never sent", (t) => (over(t) > 0.8 ? jitter(6, 0.9) : 0))] },
    { id: "response", title: "Response time, from when it was due", unit: "ms", log: true, series: [series("p50", lat(4.1, 610, 0.08)), series("p90", lat(6.8, 870, 0.08)), series("p99", lat(11, 1040, 0.1)), series("max", lat(19, 1130, 0.2), "points")] },
    { id: "service", title: "Service time, from the send", unit: "ms", log: false, series: [series("p50", lat(4, 590, 0.08)), series("p99", lat(10, 980, 0.12))] },
    { id: "errors", title: "Errors", unit: "requests/s", log: false, series: [series("timeout", (t) => (over(t) > 0.85 ? Math.round(rnd() * 3) : 0), "step"), series("status 5xx", () => 0, "step")] },
    { id: "pool", title: "Connection pool", unit: "connections", log: false, series: [series("in use", (t) => Math.min(bad ? 4 : 16, Math.round(jitter(rate(t) / (bad ? 42 : 38), 0.15))), "step"), series("limit", () => (bad ? 4 : 16), "step"), series("requests waiting", (t) => Math.round(over(t) * 168 * (1 + rnd() * 0.06)))] },
    { id: "pool_wait", title: "Wait for a connection", unit: "ms", log: true, series: [series("mean", lat(0.04, 640, 0.08)), series("p99", lat(0.4, 930, 0.1))] },
    { id: "cpu", title: "Processor", unit: "ratio", log: false, series: [series("service", (t) => jitter((Math.min(rate(t), cap) / 240) * 0.34, 0.12)), series("load generator", (t) => jitter((rate(t) / 240) * 0.11, 0.2)), series("waiting to run", () => jitter(0.012, 0.8))] },
    { id: "disk", title: "Disk: busy time", unit: "ratio", log: false, series: [series("vda", () => jitter(0.06, 0.9))] },
    { id: "disk_bytes", title: "Disk: throughput", unit: "bytes/s", log: false, series: [series("read", () => (rnd() > 0.9 ? jitter(3.2e6, 0.4) : 0)), series("written", () => jitter(1.1e6, 0.5))] },
    { id: "lag", title: "Load generator: send lag", unit: "ms", log: false, series: [series("p50", () => jitter(0.06, 0.3)), series("p99", () => jitter(0.31, 0.5))] },
  ];
}

const ev = (text, chart, window, observed, expected, table = "samples", column = "value", labels = {}) => ({ table, column, labels, window: window && { from_s: window[0], to_s: window[1] }, observed, expected, text, chart });
const poolLabels = { metric: "db_client_connection_count", pool: "main" };
const cleared = (bad) => [
  { cause: "cpu_saturated", title: "The processors are full", evidence: [ev(`The service kept the processors ${bad ? 25 : 38} % busy at most, and threads waited 1.2 % of the time to run.`, "cpu", [0, 15], bad ? 0.25 : 0.38, "near 1, with run-queue delay", "samples", "value", { metric: "system_cpu_utilization_ratio" })] },
  { cause: "disk_saturated", title: "The disk is full", evidence: [ev("The disk was busy 6 % of the time; an operation took 0.4 ms throughout.", "disk", [0, 15], 0.06, "a plateau while requests wait", "samples", "value", { device: "vda" })] },
  { cause: "lock_contention", title: "Sessions wait for locks", evidence: [ev("No statement waited for a lock longer than 0.2 ms.", null, [0, 15], "0.2 ms", "waits that grow with load", "spans", "wait_ns")] },
  { cause: "load_generator_limit", title: "The load generator is the limit", evidence: [ev(`Requests were sent ${bad ? 0.31 : 0.28} ms late at the 99th percentile, and 11 % of a core was used.`, "lag", [0, 15], bad ? 0.31 : 0.28, "below 1 ms", "requests", "sent_at")] },
  ...(bad ? [] : [{ cause: "connection_pool_exhausted", title: "The connection pool is too small", evidence: [ev("At most 7 of 16 connections were in use and nobody waited.", "pool", [0, 15], 7, 16, "samples", "value", poolLabels)] }]),
];
const notJudged = [
  { cause: "memory_pressure", title: "Memory is short", missing: "no pressure-stall information: the kernel was started without it", enable: "add psi=1 to the kernel command line" },
  { cause: "plan_changed", title: "A query plan changed", missing: "the embedded database keeps no statement history", enable: "holdup run --watch 'mysql://…' with performance_schema=ON" },
];
const coverage = [
  { source: "requests", state: "complete", why: null, enable: null, cpu_ratio: 0.11 },
  { source: "prometheus 127.0.0.1:8088", state: "complete", why: null, enable: null, cpu_ratio: 0.002 },
  { source: "host", state: "partial", why: "no pressure-stall information in this kernel", enable: "psi=1 on the kernel command line", cpu_ratio: 0.004 },
  { source: "threads", state: "absent", why: "stacks of another user's process can't be read", enable: "sudo setcap cap_sys_ptrace+ep holdup", cpu_ratio: null },
];
const parts = (list) => list.map(([part, ms, error_ms]) => ({ part, ms, error_ms }));
const ledger = (bad) => [
  ["GET /orders", "all", bad ? 371 : 4.4], ["GET /orders", "p50", bad ? 214 : 4.1], ["GET /orders", "p90", bad ? 806 : 6.9], ["GET /orders", "p99", bad ? 893 : 11.2],
  ["POST /orders", "all", bad ? 402 : 7.1], ["POST /orders", "p99", bad ? 917 : 16.3],
].map(([operation, band, response]) => {
  const work = bad ? 4.2 + response * 0.012 : response * 0.71;
  const wait = bad ? response * 0.91 : 0.03;
  const list = parts([["send_lag", 0.08, 0.02], ["connect", 0.0, 0.0], ["app_queue", response * 0.012, 0.4], ["app_cpu", response * 0.014 + 0.3, 0.3], ["connection_pool_wait", wait, wait * 0.013], ["database_execution", work, 0.6], ["network", 0.11, 0.05]])
    .map((p) => ({ ...p, ms: Math.round(p.ms * 100) / 100, error_ms: Math.round(p.error_ms * 100) / 100 }));
  return { operation, band, response_ms: response, parts: list, residual_ms: Math.round((response - list.reduce((a, p) => a + p.ms, 0)) * 100) / 100 };
});
const criticalPath = [
  {
    operation: "GET /orders", service: "shop", requests: 132, mean_ms: 371, p99_ms: 893,
    parts: [
      { part: "connection_pool_wait", what: "main", service: "shop", ms: 338, path_ms: 338, faster_ms: 169, saves_ms: 169, saves_p99_ms: 402 },
      { part: "downstream", what: "stock.example", service: "shop", ms: 18, path_ms: 0, faster_ms: 9, saves_ms: 0, saves_p99_ms: 0 },
    ],
  },
  { operation: "POST /orders", service: "shop", requests: 28, mean_ms: 402, p99_ms: null, parts: [{ part: "app", what: "render", service: "render", ms: 12, path_ms: 12, faster_ms: 6, saves_ms: 6, saves_p99_ms: null }] },
];
const services = [
  { service: "stock", own_ms: 214, own_before_ms: 3, way_ms: 2, stores_ms: 190, calls: 4, calls_before: 4, errors: 0.02, errors_before: 0 },
  { service: "shop", own_ms: 12, own_before_ms: null, way_ms: 0, stores_ms: 4, calls: 1, calls_before: null, errors: 0, errors_before: null },
];

const run = (name, bad) => ({
  name, started_at: bad ? "2026-11-21T22:04:07.120Z" : "2026-11-21T22:04:24.480Z", duration_s: 15.2,
  verdict: {
    verdict: bad ? "found" : "healthy", culprit: bad ? "connection_pool_exhausted" : null,
    headline: bad ? "Requests wait for a database connection: all 4 of the pool are in use from 160 requests/s on, and the wait is 812 of the 893 ms at the 99th percentile." : "Nothing is holding up: 240 requests/s are answered in 11 ms at the 99th percentile, with 7 of 16 connections in use.",
    findings: bad ? [
      { cause: "connection_pool_exhausted", title: "The connection pool is too small", role: "root", confidence: 0.93, explains_ms: 812, explains_ratio: 0.9093,
        evidence: [
          ev("All 4 connections were in use for 8.9 of the last 9.0 s, while up to 168 requests waited for one.", "pool", [6.1, 15], "4 of 4", "below 4", "samples", "value", poolLabels),
          ev("The wait for a connection grew from 0.04 ms to 640 ms, in step with the response time.", "pool_wait", [6.1, 15], "640 ms", "under 1 ms", "samples", "value", { metric: "db_client_connection_wait_time_seconds", pool: "main" }),
          ev("The achieved rate went flat at 158/s: what 4 connections carry at 25.3 ms each (Little’s law gives 158.1).", "rate", [7.5, 15], "158/s", "240/s", "requests", "done_at"),
          ev("Once it had a connection, a statement took 4.2 ms, as at the lightest load.", null, [0, 15], "4.2 ms", "4.1 ms", "spans", "duration_ns", { db_system: "sqlite" }),
        ],
        fixes: [{ text: "Give the pool 16 connections: 240 requests/s at 25.3 ms each keep 6.1 busy, and bursts need room.", command: "shop-service --pool-size 16", risk: "Each connection costs the database memory; stay below its own limit." }, { text: "Or hold connections for less time: the service keeps one while it renders the page.", risk: null }],
        prove: "Run the same schedule again with the larger pool: the wait falls under 1 ms and the achieved rate follows the offered one." },
      { cause: "worker_pool_exhausted", title: "Worker threads are all taken", role: "symptom", confidence: 0.71, explains_ms: 10.7, explains_ratio: 0.01198, evidence: [ev("Workers are busy because they wait for connections; their own queue held 3 requests at most.", "service", [9, 15], 3, null, "samples", "value", { metric: "http_server_active_requests" })], fixes: [], prove: "" },
    ] : [],
    cleared: cleared(bad), not_judged: notJudged, ledger: ledger(bad), critical_path: bad ? criticalPath : [], services: bad ? services : [],
    load: { operations: [
      { operation: "GET /orders", offered: 132, achieved: bad ? 104.2 : 131.8, errors: bad ? 11 : 0, response_ms: bad ? q(214, 806, 893, 1104, 1162) : q(4.1, 6.9, 11.2, 17.8, 19.4), service_ms: bad ? q(213, 805, 892, 1103, 1161) : q(4, 6.8, 11, 17.6, 19.2), send_lag_ms: q(0.06, 0.12, 0.31, 0.7, 1.1) },
      { operation: "POST /orders", offered: 28, achieved: bad ? 22.4 : 27.9, errors: bad ? 3 : 0, response_ms: bad ? q(241, 829, 917, 1121, 1168) : q(6.7, 9.9, 16.3, 22, 24), service_ms: bad ? q(240, 828, 916, 1120, 1167) : q(6.6, 9.8, 16.1, 21.8, 23.9), send_lag_ms: q(0.06, 0.13, 0.33, 0.8, 1.2) },
    ], generator_limited: false, model: "open", protocol: "http/1.1", loops: 1, shard: null, validity: validity(bad),
    warm_up: bad ? { seconds: 0, detected: false, text: null } : { seconds: 1.2, detected: true, text: "the first 1.2 s are left out of response times as warm-up: a median of 9.10 ms, against 4.20 ms after" } },
    coverage,
  },
  phases, charts: charts(bad),
  overview: [
    { title: "offered", chart: "rate", series: 0, limit: null, is_bad: false }, { title: "achieved", chart: "rate", series: 1, limit: null, is_bad: false },
    { title: "errors", chart: "errors", series: 0, limit: null, is_bad: true }, { title: "response p99", chart: "response", series: 2, limit: null, is_bad: false },
    { title: "busy workers", chart: "pool", series: 0, limit: 1, is_bad: false },
  ],
  marks: bad ? [{ at_s: 10.6, kind: "server_stopped", text: "nobody listens on port 8080 any more", is_bad: true }, { at_s: 11.3, kind: "server_started", text: "port 8080 is listened on again", is_bad: false }] : [],
});

function validity(bad) {
  const slices = [{ from_s: 0, to_s: 12, label: "valid" }, { from_s: 12, to_s: 15, label: "capped" }];
  const text = "the in-flight limit of 200 bound in 3 of 15 s: the achieved rate there is no limit of the service; to find one raise --connections to about 220 (Little's law: offered rate x p99 of response time)";
  if (bad) return { text: "12 of 15 s valid, 3 s capped", reasons: [{ limit: "in_flight", seconds: 3, text }], fixes: [], slices };
  return { text: "all 15 s valid", reasons: [], fixes: [], slices: [{ from_s: 0, to_s: 15, label: "valid" }] };
}

function compared(section, indicator, unit, before, after, verdict, is_headline) {
  const by = unit === "ratio" || before === null ? null : after / before - 1;
  const at = (share) => (by === null ? (after - before) * (1 + share) : (1 + by) * (1 + share) - 1);
  const told = verdict !== "missing";
  const against = { verdict, difference: told ? after - before : null, change_ratio: told ? by : null, low: told ? at(-0.1) : null, high: told ? at(0.1) : null,
    why: null, repeats_wanted: verdict === "cant_tell" ? 6 : null };
  return { section, indicator, unit, is_headline, more_is_better: null, cells: [{ value: before, against: null }, { value: after, against }] };
}

const sample = {
  holdup: "0.1.0", title: "demo: a service with a too small connection pool", runs: [run("faulty", true), run("fixed", false)],
  comparison: {
    columns: [
      { name: "faulty", recordings: 1, left_out: [], verdict: null, headline: null },
      { name: "fixed", recordings: 1, left_out: [], verdict: "better", headline: "fixed is better than faulty: response time p99 11.2 ms instead of 893 ms (-99 %, 95 % interval -99 to -98 %)" },
    ],
    rows: [
      compared("requests", "achieved rate", "requests/s", 158, 239.6, "better", true),
      compared("requests", "failed", "ratio", 0.0061, 0, "better", true),
      compared("requests", "response time p50", "ms", 214, 4.1, "better", true),
      compared("requests", "response time p99", "ms", 893, 11.2, "better", true),
      compared("cost", "CPU per 1,000 requests (process)", "s", 0.404, 0.421, "cant_tell", true),
      compared("ledger", "wait for a connection (mean)", "ms", 338, 0.03, "better", false),
      compared("indicators", "idle CPU time", "ratio", 0.81, 0.73, "different", false),
      compared("indicators", "busiest disk, throughput", "MB/s", 1.1, 1.12, "no_difference", false),
      compared("indicators", "statement time p99", "ms", null, 5.4, "missing", false),
    ],
    notes: ["One recording of each: by how much runs of the same thing differ is assumed, not measured."],
  },
};
writeFileSync(new URL("sample.json", import.meta.url), JSON.stringify(sample));
