// The page in a DOM without a browser: that it shows what the model says, in order, and that text stays text.
// Charts need a canvas and are not drawn here; their titles, legends and tables are.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseHTML } from "linkedom";
import { render } from "preact";
import { act } from "preact/test-utils";
import { App, shades } from "../src/app.tsx";
import type { ChainLink, Finding, Plan, Report } from "../src/model.ts";
import { readReport } from "../src/read.ts";

const sample = readFileSync(join(process.cwd(), "test", "sample.json"), "utf8");
const HOSTILE = `</script><img src=x onerror="document.title='owned'"><!--`;

function show(report: Report): HTMLElement {
  const { document } = parseHTML('<html><head></head><body><div id="app"></div></body></html>');
  const nothing = () => undefined;
  Object.assign(globalThis, { document, location: { hash: "" }, addEventListener: nothing, removeEventListener: nothing, matchMedia: undefined });
  const root = document.getElementById("app") as unknown as HTMLElement;
  void act(() => render(<App report={report} />, root));
  return root;
}

test("the sections come in reading order", () => {
  const root = show(readReport(sample));
  const titles = [...root.querySelectorAll("h2")].map((h) => h.textContent);
  assert.deepEqual(titles, ["The run in one picture", "Findings", "Side by side", "Where the time went", "Services", "What a fix gives back", "What the client saw", "The run over time", "Cleared", "Not checked", "Sources"]);
});

test("the verdict reads whole: confidence, what it explains, evidence linked to its chart", () => {
  const root = show(readReport(sample));
  const note = root.querySelector(".finding.root");
  assert.match(note?.textContent ?? "", /certain \(0\.93\).*accounts for 812 ms of 893 ms \(91\u2009%\)/);
  const links = [...(note?.querySelectorAll(".evidence a") ?? [])].map((a) => a.getAttribute("href"));
  assert.deepEqual(links, ["#faulty/pool/6.1~15", "#faulty/pool_wait/6.1~15", "#faulty/rate/7.5~15"]);
  for (const href of links) assert.ok(root.querySelector(`[id="chart:${href?.split("/")[1]}"]`), `${href} leads nowhere`);
});

test("an undecided verdict has only a likeliest cause; of two that tie none has a number", () => {
  const report = readReport(sample);
  const { verdict } = report.runs[0]!;
  const word = (root: HTMLElement) => root.querySelector(".verdict .word")?.textContent;
  assert.equal(word(show(report)), "FOUND");
  assert.equal(show(report).querySelectorAll(".likeliest").length, 0);
  Object.assign(verdict, { verdict: "undecided", culprit: null });
  verdict.findings[0]!.confidence = 0.49;
  const unsure = show(report);
  assert.equal(word(unsure), "UNDECIDED");
  assert.match(unsure.querySelector(".verdict .likeliest")?.textContent ?? "", /^likeliest: .+ connection_pool_exhausted \(0\.49\)$/);
  assert.ok([...unsure.querySelectorAll("h2")].some((h) => h.textContent === "Likeliest causes"));
  verdict.findings[0]!.confidence = 0.6;
  const tied = show(report);
  assert.equal(word(tied), "UNDECIDED");
  assert.match(tied.querySelector(".verdict .likeliest")?.textContent ?? "", /connection_pool_exhausted$/);
});

test("what stands around a finding: chain, next, load average, notes; hostile text stays text", () => {
  const report = readReport(sample);
  const { verdict } = report.runs[0]!;
  const root_cause = verdict.findings[0]!;
  const symptom = verdict.findings[1]!.cause;
  verdict.findings[1]!.follows_from = root_cause.cause;
  verdict.chain = [
    { cause: root_cause.cause, role: "root", leads_to: symptom, without: HOSTILE },
    { cause: symptom, role: "symptom", leads_to: "latency", without: HOSTILE },
  ];
  root_cause.fixes[0]!.keep = HOSTILE;
  verdict.next = { ...root_cause, cause: "table_cache_small", title: HOSTILE, role: "next" };
  verdict.host_load = {
    text: HOSTILE, load_average: [129.4, 60, 30], load_1m_start: 2, load_1m_max: 129.4, cpus: 2, idle_ratio: 0.45, iowait_ratio: 0.1,
    runnable: 41, uninterruptible: 547, reconstructed_1m: 128, parts: [{ process: HOSTILE, state: "D", wchan: "do_unlinkat", threads: 547 }],
  };
  verdict.dear = [{ cause: "missing_index", text: HOSTILE, command: HOSTILE }];
  verdict.notes = [{
    check: "readahead", vendor: "MongoDB", subject: HOSTILE, observed: "128 KB", advised: "4 to 16 KB", text: HOSTILE,
    finding: "readahead_too_large", fix: { text: HOSTILE, command: HOSTILE }, reference: HOSTILE,
  }];
  const root = show(report);
  assert.equal(root.querySelector(".chain-line")?.textContent, `${root_cause.cause} → ${symptom}`);
  const titles = [...root.querySelectorAll("h2")].map((h) => h.textContent);
  for (const title of ["Dear at this level", "Will bind next", "The load average", "Settings that differ from the vendors’ advice"]) assert.ok(titles.includes(title), `${title} is not in ${titles.join()}`);
  assert.match(root.querySelector(".host-load")?.textContent ?? "", /129.*547/);
  assert.match(root.querySelector(".notes")?.textContent ?? "", /It matters here: readahead_too_large\./);
  assert.equal(root.querySelectorAll("img").length, 0);
  assert.ok((root.textContent ?? "").split(HOSTILE).length > 8);
});

/** The sample as a disk at its limit: a contributor of a contributor, the root, what follows, two episodes, and dead rows left. */
function outlined(): Report {
  const report = readReport(sample);
  const { verdict } = report.runs[0]!;
  const [pool, workers] = verdict.findings as [Finding, Finding];
  const finding = (cause: string, role: Finding["role"], of: Partial<Finding>): Finding => ({ ...workers, cause, role, title: `About ${cause}`, ...of });
  verdict.culprit = "throughput_ceiling";
  verdict.symptom = "p99 was 1,199 ms, the objective is p99 < 1s";
  verdict.episode = { from_s: 9, to_s: 15 };
  verdict.episodes = [
    { from_s: 2, to_s: 5, requests: 300, response_ms: 41.2, baseline_ms: 4.1, judged: false },
    { from_s: 9, to_s: 15, requests: 700, response_ms: 812, baseline_ms: 4.1, judged: true },
  ];
  verdict.debt = {
    text: "vacuum is at work on public.article with 90,000 dead rows", checkpoint: false, seconds: 143,
    tables: [
      { table: "pg_toast.pg_toast_16415", toast_of: "public.article", dead_rows: 90_000, fires_at_rows: 3_646, made_per_second: 441.6, under_way: true },
      { table: "public.tag", dead_rows: 12_000, fires_at_rows: 11_000, made_per_second: 3, under_way: false },
    ],
  };
  verdict.findings = [
    { ...pool, cause: "throughput_ceiling", role: "root" },
    finding("autovacuum_pressure", "contributor", { adds_to: "throughput_ceiling" }),
    finding("toast_rewrite", "contributor", { adds_to: "autovacuum_pressure" }),
    finding("disk_saturated", "symptom", { follows_from: "throughput_ceiling" }),
    finding("commit_log_bound", "contributor", {}),
  ];
  const link = (cause: string, role: Finding["role"], leads_to: string, without: string): ChainLink => ({ cause, role, leads_to, without });
  verdict.chain = [
    link("toast_rewrite", "contributor", "autovacuum_pressure", "4.9 MB/s of 6.9 MB/s would be asked for"),
    link("autovacuum_pressure", "contributor", "throughput_ceiling", "6.0 MB/s of 6.9 MB/s would be asked for"),
    link("throughput_ceiling", "root", "disk_saturated", "0.00 ms of the 691 ms would be left"),
    link("disk_saturated", "symptom", "latency", "it would come back: it follows from throughput_ceiling"),
  ];
  return report;
}

test("the chain is told from what adds to the root to what follows, each with what would be so without it", () => {
  const root = show(outlined());
  assert.equal(root.querySelector(".chain-line")?.textContent, "toast_rewrite → autovacuum_pressure → throughput_ceiling → disk_saturated");
  assert.equal(root.querySelector(".chain-line .is-root")?.textContent, "throughput_ceiling");
  const links = [...root.querySelectorAll(".links li")].map((li) => [...li.querySelectorAll("p")].map((p) => p.textContent?.trim()));
  assert.deepEqual(links, [
    ["Contributor toast_rewrite adds to autovacuum_pressure", "Without it: 4.9 MB/s of 6.9 MB/s would be asked for"],
    ["Contributor autovacuum_pressure adds to throughput_ceiling", "Without it: 6.0 MB/s of 6.9 MB/s would be asked for"],
    ["Root cause throughput_ceiling", "Without it: 0.00 ms of the 691 ms would be left"],
    ["Symptom disk_saturated follows from throughput_ceiling", "Without it: it would come back: it follows from throughput_ceiling"],
  ]);
  for (const a of root.querySelectorAll(".links a")) {
    const id = decodeURIComponent(a.getAttribute("href")?.slice(1) ?? "");
    assert.ok(root.querySelector(`[id="${id}"]`), `${id} leads nowhere`);
  }
  const named = [...root.querySelectorAll(".finding.contributor header")].map((h) => h.textContent);
  assert.deepEqual(named, [
    "ContributorAbout autovacuum_pressureautovacuum_pressureadds to throughput_ceiling",
    "ContributorAbout toast_rewritetoast_rewriteadds to autovacuum_pressure",
    "ContributorAbout commit_log_boundcommit_log_bound",
  ]);
  const circle = outlined();
  circle.runs[0]!.verdict.findings[0]!.follows_from = "disk_saturated";
  circle.runs[0]!.verdict.findings[1]!.adds_to = "toast_rewrite";
  assert.ok(show(circle).querySelector(".chain-line"), "what goes in a circle ends");
});

test("the run is one picture: a lane each, holes stay holes, marks stand across, and hostile text stays text", () => {
  const report = readReport(sample);
  const run = report.runs[0]!;
  run.marks.push({ at_s: 4, kind: HOSTILE, text: HOSTILE, is_bad: true });
  run.overview.push({ title: HOSTILE, chart: "rate", series: 0, limit: null, is_bad: false });
  run.overview.push({ title: "gone", chart: "no such chart", series: 0, limit: null, is_bad: false });
  const picture = show(report).querySelector(".overview")!;
  const lanes = [...picture.querySelectorAll(".lane")];
  assert.deepEqual(lanes.map((l) => l.querySelector(".name")?.textContent), ["offered", "achieved", "errors", "response p99", "busy workers", HOSTILE]);
  assert.equal(lanes[3]?.querySelectorAll(".line").length, 2, "response times have a hole from 10.6 to 11.3 s");
  assert.equal(lanes[4]?.querySelectorAll(".limit").length, 1);
  assert.match(lanes[4]?.textContent ?? "", /at most 4 of 4/);
  assert.equal(picture.querySelectorAll(".mark").length, 3);
  assert.match(picture.querySelector("figcaption")?.textContent ?? "", /^server stopped at 10.6 s; /);
  assert.equal(picture.querySelectorAll("img, script").length, 0);
  const drawn = (l: Element) => Number(l.querySelector(".base")?.getAttribute("y1")) - Math.min(...(l.querySelector(".line")?.getAttribute("points") ?? "").split(" ").map((p) => Number(p.split(",")[1])));
  assert.equal(drawn(lanes[0]!), 30);
  assert.ok(drawn(lanes[1]!) > 15 && drawn(lanes[1]!) < 25, "158 of 240 are achieved, on the scale of what was offered");
});

test("every episode is listed, linked to its place, and shaded; a single one needs no list", () => {
  const report = outlined();
  const root = show(report);
  const rows = [...root.querySelectorAll(".episodes tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
  assert.deepEqual(rows, [["2 to 5 s", "300", "41.2 ms", "4.1 ms", ""], ["9 to 15 s", "700", "812 ms", "4.1 ms", "judged here"]]);
  assert.deepEqual([...root.querySelectorAll(".episodes a")].map((a) => a.getAttribute("href")), ["#faulty/response/2~5", "#faulty/response/9~15"]);
  assert.match(root.querySelector(".shades")?.textContent ?? "", /episode: causes are judged here.*another episode.*capped/);
  const titles = [...root.querySelectorAll("h2")].map((h) => h.textContent);
  assert.deepEqual(titles.slice(0, 4), ["Symptom and episodes", "The run in one picture", "Findings", "Old work is not finished"]);

  report.runs[0]!.verdict.episodes = [];
  report.runs[0]!.charts = [];
  const one = show(report);
  assert.equal(one.querySelectorAll(".episodes").length, 0);
  const when = [...one.querySelectorAll("section")].find((s) => s.querySelector("h2")?.textContent === "Symptom and episodes");
  assert.match(when?.textContent ?? "", /9 to 15 s: p99 was 1,199 ms, the objective is p99 < 1s\.$/);
  assert.equal(when?.querySelectorAll("a").length, 0, "without its chart it is no link");
});

test("the stretches that are shaded: every episode, or the one there is", () => {
  const { runs } = outlined();
  const slow = () => shades(runs[0]!).filter((s) => s.label.startsWith("episode"));
  assert.deepEqual(slow(), [{ from_s: 2, to_s: 5, label: "episode" }, { from_s: 9, to_s: 15, label: "episode_judged" }]);
  runs[0]!.verdict.episodes = [];
  assert.deepEqual(slow(), [{ from_s: 9, to_s: 15, label: "episode_judged" }]);
  runs[0]!.verdict.episode = null;
  assert.deepEqual(slow(), []);
});

test("what is not settled yet is said, table by table", () => {
  const root = show(outlined());
  const rows = [...root.querySelectorAll(".debt tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
  assert.deepEqual(rows, [
    ["pg_toast.pg_toast_16415 TOAST of public.article", "90\u2009000", "3\u2009646", "442", "running"],
    ["public.tag", "12\u2009000", "11\u2009000", "3", "due"],
  ]);
  assert.match(root.textContent ?? "", /Vacuum is at work on public\.article with 90,000 dead rows\./);
});

const PLANS: Plan[] = [
  { kind: "auto_explain", digest: "d1", digest_text: "SELECT ?", shape: "was", seen: 5, from_s: 0.4, to_s: 9.8, median_ms: 0.16, nodes: [
    { depth: 0, name: "Aggregate", rows_estimated: 1, rows_actual: 1, loops: 1 },
    { depth: 1, name: "Index Only Scan remark by remark_article", rows_estimated: 8, rows_actual: null, loops: 100 } ] },
  { kind: "auto_explain", digest: "d1", digest_text: "SELECT ?", shape: "is", seen: 1, from_s: 10.4, to_s: 10.4, median_ms: null, nodes: [
    { depth: 0, name: "Seq Scan remark", rows_estimated: 8, rows_actual: null, loops: null } ] },
  { kind: "auto_explain", digest: "d2", digest_text: "SELECT ?", shape: "other", seen: 1, from_s: 1, to_s: 1, median_ms: null, nodes: [] },
];

test("a plan that changed is shown as it was and as it is, and only where evidence points at it", () => {
  const report = outlined();
  report.runs[0]!.plans = PLANS;
  const [first, second] = report.runs[0]!.verdict.findings[0]!.evidence;
  Object.assign(first!, { table: "plans", labels: { kind: "auto_explain", digest: "d1", shape: "is" } });
  Object.assign(second!, { table: "plans", labels: { kind: "auto_explain", digest: "d1", shape: "was" } });
  const root = show(report);
  assert.equal(root.querySelectorAll(".plans").length, 1);
  const plans = [...root.querySelectorAll(".finding.root .plan")];
  assert.deepEqual(plans.map((p) => p.querySelector("p")?.textContent), [
    "shape was seen 5 times from 0.4 to 9.8 s, median 0.16 ms",
    "shape is seen once at 10.4 s",
  ]);
  assert.deepEqual([...plans[0]!.querySelectorAll("li")].map((li) => li.textContent?.trim()), [
    "Aggregate 1 row expected, 1 actual",
    "Index Only Scan remark by remark_article 8 rows expected, 100 runs",
  ]);
  assert.deepEqual([...plans[0]!.querySelectorAll("li")].map((li) => li.getAttribute("style")?.includes("0.9rem")), [false, true]);
});

test("close to nothing being left, changes are told apart by tenths", () => {
  const report = readReport(sample);
  const row = report.comparison!.rows.find((one) => one.indicator === "response time p99")!;
  const against = row.cells[1]!.against!;
  const told = (change: number, low: number, high: number) => {
    Object.assign(against, { change_ratio: change, low, high });
    const cells = [...show(report).querySelectorAll("tr")].find((line) => line.textContent?.includes("response time p99"));
    return [...(cells?.querySelectorAll("td") ?? [])].map((cell) => cell.textContent?.replaceAll("\u2009", " ")).find((text) => text?.includes(" to "));
  };
  assert.equal(told(-0.9932, -0.9941, -0.9912), "−99.3 % (−99.4 % to −99.1 %)");
  assert.equal(told(-0.98, -0.983, -0.979), "−98 % (−98 % to −98 %)");
  // A request that got no answer took at least so long.
  row.cells[1]!.is_least = true;
  assert.match(show(report).querySelector(".comparison")?.textContent ?? "", /at least 11/);
});

test("an outline that is not what it should be still gives a page", () => {
  const report = JSON.parse(sample);
  Object.assign(report.runs[0], { plans: [5, { nodes: 5 }] });
  Object.assign(report.runs[0].verdict, { symptom: "slow", episode: { from_s: "a" }, episodes: [5, { from_s: 1 }, { from_s: 1, to_s: 2 }], debt: { tables: [{}] }, chain: [{}, 5] });
  const root = show(readReport(JSON.stringify(report)));
  assert.doesNotMatch(root.textContent ?? "", /NaN|\[object/);
  assert.equal(root.querySelectorAll(".episodes tbody tr").length, 1);
});

test("each run is a tab, and evidence for a chart that is not there is no link", () => {
  const report = readReport(sample);
  report.runs[0]!.charts = [];
  const root = show(report);
  assert.equal(root.querySelectorAll('[role="tab"]').length, 2);
  assert.equal(root.querySelectorAll(".evidence a").length, 0);
});

test("the residual is named, and a negative one takes no room", () => {
  const report = readReport(sample);
  assert.ok(show(report).querySelector(".bar .hatch"));
  for (const row of report.runs[0]!.verdict.ledger) row.residual_ms = -5;
  const root = show(report);
  assert.equal(root.querySelectorAll(".bar .hatch").length, 0);
  assert.match(root.querySelector(".ledger table")?.textContent ?? "", /unexplained\u22125/);
});

test("what a fix gives back stands beside what a part takes, and a run without traces has no such table", async () => {
  const root = show(readReport(sample));
  const rows = [...root.querySelectorAll("table.gains tbody tr")].map((row) => row.textContent);
  assert.deepEqual(rows, ["connection pool waitmain338338169169402", "downstreamstock.example180900", "apprender in render121266\u2013"]);
  await act(() => (root.querySelectorAll('[role="tab"]')[1] as HTMLElement).click());
  assert.equal(root.querySelectorAll("#gains").length, 0);
});

test("services stand with their own time before and now, and what no baseline shows is a gap", async () => {
  const root = show(readReport(sample));
  const rows = [...root.querySelectorAll("table.services tbody tr")].map((row) => row.textContent);
  assert.deepEqual(rows, ["stock2143190244" + "2\u2009%0\u2009%", "shop12\u2013401\u20130\u2009%\u2013"]);
  await act(() => (root.querySelectorAll('[role="tab"]')[1] as HTMLElement).click());
  assert.equal(root.querySelectorAll("#services").length, 0);
});

test("a part keeps its colour from run to run, also where another run lacks one before it", async () => {
  const report = readReport(sample);
  for (const row of report.runs[1]!.verdict.ledger) row.parts = row.parts.filter((p) => p.part === "database_execution");
  const root = show(report);
  const colour = () => [...root.querySelectorAll<HTMLElement>(".bar .piece")].find((p) => /database execution/.test(p.textContent ?? ""))?.style.background;
  const faulty = colour();
  assert.ok(faulty);
  await act(() => (root.querySelectorAll('[role="tab"]')[1] as HTMLElement).click());
  assert.equal(root.querySelectorAll(".bar .piece:not(.hatch)").length, 6);
  assert.equal(colour(), faulty);
});

test("a chart's table tells a gap from a value", async () => {
  const root = show(readReport(sample));
  const figure = root.querySelector('[id="chart:response"]');
  const button = [...(figure?.querySelectorAll<HTMLElement>(".tools button") ?? [])].find((b) => b.textContent === "table");
  await act(() => button?.click());
  assert.equal(figure?.querySelectorAll("tbody tr").length, 60);
  assert.ok([...(figure?.querySelectorAll("td") ?? [])].some((cell) => cell.textContent === "gap"));
});

test("objectives are shown with their windows, and what was not judged with its reason", () => {
  const report = readReport(sample);
  const verdict = report.runs[0]!.verdict;
  const window = (from_s: number) => ({ from_s, to_s: from_s + 30 });
  const missed = { text: "p99 < 500ms for 30s", state: "missed", value: 812.3, unit: "ms", first_window: window(10), worst_window: window(12), windows: 21, windows_missed: 5, why: "…" } as const;
  verdict.objectives = [
    missed,
    { ...missed, text: HOSTILE, state: "met", value: 0.0125, unit: "ratio", first_window: null, worst_window: null, windows: 0, why: null },
    { ...missed, text: "rate > 5", state: "not_judged", value: null, why: "the run was too short" },
  ];
  verdict.load.aborted = "ended early after 14.2 s, because of p99 < 500ms for 30s";
  const root = show(report);
  const rows = [...root.querySelectorAll(".objectives tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
  assert.deepEqual(rows[0]?.slice(1), ["missed", "812 ms", "12 to 42 s", "10 to 40 s", "5 of 21"]);
  assert.deepEqual([rows[1]?.[0], ...(rows[1]?.slice(3) ?? [])], [HOSTILE, "the whole run", "–", "–"]);
  assert.deepEqual(rows[2], ["rate > 5", "not judged", "the run was too short"]);
  assert.equal(root.querySelectorAll("img").length, 0);
  assert.match(root.querySelector(".warn")?.textContent ?? "", /ended early after 14.2 s/);
});

const SEARCH = {
  knee: { value: 198.4, low: 190, high: 205 },
  breaking_point: { rate: { value: 202, low: 199, high: 205 }, how: "achieved_below_offered" },
  curve: [{ rate: 10, response_ms: 20 }, { rate: 150, response_ms: 21 }, { rate: 199, response_ms: 80 }],
  usl: { determined: true, curve: [{ rate: 10, response_ms: 20 }, { rate: 180, response_ms: 25 }] },
  refused: null,
  points: [
    { from_s: 1, purpose: "explore", offered: 160, achieved: 160, mean_ms: 20.4, p99_ms: 24, error_ratio: 0, in_system: 3, held: "yes", how: null },
    { from_s: 4, purpose: "explore", offered: 320, achieved: 200, mean_ms: 570, p99_ms: 900, error_ratio: 0, in_system: 240, held: "no", how: "achieved_below_offered" },
    { from_s: 9, purpose: "overload", offered: 5_000, achieved: 200, mean_ms: null, p99_ms: null, error_ratio: 0.02, in_system: 900, held: "no", how: "errors" },
  ],
  text: ["The knee is at 198/s (190 to 205): from there on response time grows faster than load.", HOSTILE],
};

/** The sample, as a search whose JSON is `search`. */
function searched(search: unknown): Report {
  const report = JSON.parse(sample);
  report.runs[0].verdict.search = search;
  return readReport(JSON.stringify(report));
}

test("a search comes first, with its sentences, its curve and every step", () => {
  const root = show(searched(SEARCH));
  assert.equal(root.querySelector("h2")?.textContent, "What the search found");
  assert.deepEqual([...root.querySelectorAll(".search-text li")].map((li) => li.textContent), SEARCH.text);
  const drawing = root.querySelector('svg[role="img"]');
  assert.match(drawing?.getAttribute("aria-label") ?? "", /knee at 198\/s \(190 to 205\), breaking point at 202\/s/);
  // Two steady steps: the overload is no point of the curve, and does not stretch the axis.
  assert.equal(drawing?.querySelectorAll(".step").length, 2);
  assert.match(drawing?.querySelector(".step.bad title")?.textContent ?? "", /320\/s offered, 200\/s achieved, mean 570 ms/);
  assert.deepEqual([drawing?.querySelectorAll("polyline.fit").length, drawing?.querySelectorAll("polyline.usl").length], [1, 1]);
  assert.equal(drawing?.querySelectorAll(".knee rect").length, 2);
  const rows = [...root.querySelectorAll(".search-steps tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
  assert.deepEqual(rows[2], ["overload", "9", "5\u2009000", "200", "–", "–", "2\u2009%", "900", "no requests fail"]);
  assert.doesNotMatch(drawing?.outerHTML ?? "", /NaN|undefined|Infinity/);
});

test("what a search did not find is not drawn, and a line that is not determined neither", () => {
  const root = show(searched({ ...SEARCH, knee: null, breaking_point: null, curve: [], usl: { ...SEARCH.usl, determined: false }, refused: "the generator was the limit" }));
  const drawing = root.querySelector(".search-figure");
  assert.equal(drawing?.querySelectorAll(".knee, .breaks, polyline").length, 0, drawing?.outerHTML.slice(0, 900));
  assert.match(root.querySelector(".warn")?.textContent ?? "", /No knee:/);
  const odd = show(searched({ points: [{ offered: "x" }, 5, { offered: 10, achieved: 10 }], text: 5, knee: { value: "1" } }));
  assert.doesNotMatch(odd.outerHTML, /NaN|undefined/);
  assert.equal(show(searched({})).querySelectorAll(".search-figure").length, 0);
  assert.equal(show(readReport(sample)).querySelectorAll(".search-text").length, 0);
});

test("hostile text stays text, wherever it stands", () => {
  const poison = (value: unknown, key = ""): unknown => {
    if (typeof value === "string") return key === "style" ? value : HOSTILE;
    if (Array.isArray(value)) return value.map((v) => poison(v));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, poison(v, k)]));
    return value;
  };
  const whole = searched(SEARCH);
  const { symptom, episode, episodes, debt, chain, findings } = outlined().runs[0]!.verdict;
  Object.assign(whole.runs[0]!.verdict, { symptom, episode, episodes, debt, chain, findings });
  whole.runs[0]!.plans = PLANS;
  const report = poison(whole) as Report;
  report.runs.forEach((run, i) => { run.name += i; });
  const pointing = report.runs[0]!.verdict.findings[0]!.evidence[1]!;
  Object.assign(pointing, { table: "plans", labels: { kind: HOSTILE, digest: HOSTILE, shape: HOSTILE } });
  report.runs[0]!.verdict.findings[0]!.evidence[0]!.labels = { [HOSTILE]: HOSTILE };
  const root = show(report);
  assert.equal(root.querySelectorAll("img, script, iframe, object, embed, form").length, 0);
  for (const element of root.querySelectorAll("*")) {
    for (const name of element.getAttributeNames()) assert.doesNotMatch(name, /^on/i);
    const href = element.getAttribute("href");
    if (href !== null) assert.match(href, /^#/);
  }
  assert.equal(root.querySelector(".headline")?.textContent, HOSTILE);
  for (const part of [".links", ".episodes", ".debt", ".plans"]) assert.ok(root.querySelector(part), `${part} is not shown`);
  for (const part of [".links li p", ".debt th[scope]", ".plan li code"]) assert.ok(root.querySelector(part)?.textContent?.includes(HOSTILE), `${part} is not text`);
  const again = parseHTML(`<html><body>${root.outerHTML}</body></html>`).document;
  assert.equal(again.querySelectorAll("img, script").length, 0);
});

test("a nearly empty model still gives a page", () => {
  assert.match(show(readReport('{"holdup":"0.1.0","title":"t","runs":[{"name":"a","verdict":{"verdict":"undecided","headline":"Too little was seen."}}]}')).textContent ?? "", /Too little was seen/);
  assert.match(show(readReport('{"runs":[]}')).textContent ?? "", /holds no run/);
});

test("how the load was put on is said, in a phrase if all is well and with reasons if not", () => {
  const report = readReport(sample);
  const faulty = show(report);
  assert.match(faulty.querySelector(".generator")?.textContent ?? "", /open model, http\/1\.1: 12 of 15 s valid, 3 s capped.*raise --connections to about 220/);
  assert.match(faulty.querySelector(".shades")?.textContent ?? "", /capped: the limit on requests in flight was reached/);
  report.runs.shift();
  const fixed = show(report);
  assert.match(fixed.querySelector(".generator")?.textContent ?? "", /all 15 s valid.*Warm-up: the first 1\.2 s.*Counts cover the whole run/);
  assert.equal(fixed.querySelectorAll(".generator li").length, 0);
  report.runs[0]!.verdict.load.model = "closed";
  assert.match(show(report).querySelector(".generator")?.textContent ?? "", /miss the waits of users/);
});

test("a load without these facts still shows its table", () => {
  const report = JSON.parse(sample) as { runs: { verdict: { load: Record<string, unknown> } }[] };
  for (const run of report.runs) {
    delete run.verdict.load.validity;
    delete run.verdict.load.warm_up;
  }
  const root = show(readReport(JSON.stringify(report)));
  assert.ok(root.querySelector("table.load"));
  assert.equal(root.querySelectorAll(".shades").length, 0);
});
