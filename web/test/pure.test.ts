// What needs no page: numbers, links, the axis, aligning series, reading the model.

import assert from "node:assert/strict";
import { test } from "node:test";
import { align, highest, logFloor, lonely, valueAt } from "../src/align.ts";
import { TimeAxis } from "../src/axis.ts";
import { clock, inUnit, instant, ms, num, percent, stretch, withUnit, words } from "../src/format.ts";
import { fromHash, toHash } from "../src/link.ts";
import type { Series } from "../src/model.ts";
import { readReport } from "../src/read.ts";

test("numbers keep three digits and never read as NaN", () => {
  assert.deepEqual([num(0.0312), num(25.333), num(1104), num(1234567), num(-3), num(null), num(NaN)], ["0.031", "25.3", "1\u2009104", "1.23\u2009M", "\u22123", "–", "–"]);
  assert.deepEqual([num(100.04), num(0.1), num(999.96)], ["100", "0.1", "1\u2009000"]);
  assert.deepEqual([words("app_cpu"), words("io_wait")], ["app CPU", "I/O wait"]);
  assert.deepEqual([ms(893), ms(12_340), percent(0.912), percent(0.0061)], ["893 ms", "12.3 s", "91\u2009%", "0.61\u2009%"]);
});

test("units: shares read as percent, bytes get their prefix", () => {
  assert.equal(withUnit(0.46, "ratio"), "46 %");
  assert.equal(withUnit(1_104_000, "bytes/s"), "1.1\u2009MB/s");
  assert.equal(withUnit(1_572_864, "bytes"), "1.5\u2009MiB");
  assert.equal(withUnit(12, "bytes"), "12 bytes");
  assert.equal(withUnit(158, "requests/s"), "158 requests/s");
  assert.equal(inUnit(null, "ms"), "–");
});

test("times", () => {
  assert.deepEqual([clock(7.25, 15), clock(75, 300), clock(3700, 7200), clock(0.5, 5)], ["7.3 s", "1:15", "1:01:40", "0.5 s"]);
  assert.deepEqual([stretch(2, 9.5), stretch(10_800, 36_000)], ["2 to 9.5 s", "3:00:00 to 10:00:00"]);
  assert.equal(instant("2026-11-21T22:04:07.120Z"), "2026-11-21 22:04:07 UTC");
  assert.equal(instant("yesterday"), "yesterday");
});

test("a place survives the trip through the address, whatever its names hold", () => {
  const place = { run: "a/b #1", chart: "p/99~%", window: { from_s: 4.5, to_s: 9 } };
  assert.deepEqual(fromHash(toHash(place)), place);
  assert.equal(fromHash("#%E0%A4%A"), null);
  assert.deepEqual(fromHash("#faulty/pool/x~y"), { run: "faulty", chart: "pool", window: null });
});

const series = (x_s: number[], y: (number | null)[]): Series => ({ name: "s", style: "line", x_s, y });

test("aligning keeps gaps as gaps and invents nothing", () => {
  const { x, columns } = align([series([0, 1, 2], [5, null, 7]), series([0.5, 2], [1, 2])]);
  assert.deepEqual(x, [0, 0.5, 1, 2]);
  assert.deepEqual(columns, [[5, undefined, null, 7], [undefined, 1, undefined, 2]]);
  assert.deepEqual(lonely(columns[0]!), [0, 3]);
  assert.equal(valueAt(columns[0]!, 1), 5);
  assert.equal(valueAt(columns[0]!, 2), null);
  assert.equal(highest(x, columns[0]!, 0, 1), 5);
  assert.deepEqual(logFloor([[0, 0.03, null, 5]]), [[0.01, 0.03, null, 5]]);
});

test("the axis stays inside the run, and a mark out of view brings the view back", () => {
  const axis = new TimeAxis({ from: 0, to: 15 });
  axis.zoom(-5, 3);
  assert.deepEqual(axis.range, { from: 0, to: 3 });
  axis.zoom(1, 1);
  assert.deepEqual(axis.range, { from: 0, to: 3 });
  axis.mark({ chart: "pool", window: { from_s: 6, to_s: 15 } });
  assert.equal(axis.zoomed, false);
  assert.deepEqual(axis.ticks(3), [0, 5, 10, 15]);
  axis.zoom(0.2, 0.5);
  assert.deepEqual(axis.ticks(3), [0.2, 0.3, 0.4, 0.5]);
});

test("a model with missing lists still reads; no model says why", () => {
  const report = readReport('{"runs":[{"name":"a"}]}');
  assert.deepEqual(report.runs[0]?.verdict.findings, []);
  assert.deepEqual(report.runs[0]?.verdict.load.operations, []);
  assert.throws(() => readReport("{"), /not JSON/);
  assert.throws(() => readReport("[]"), /no list of runs/);
});
