// The whole run in one picture: the offered load, the results, and the service's workers, queues, CPUs and memory, one lane
// each. Marks cross all lanes. It is SVG, because that prints and needs no canvas.

import { clock, inUnit, withUnit } from "../format.ts";
import { chartElement } from "../link.ts";
import type { Chart, Lane, Mark, Run, Series } from "../model.ts";

const WIDTH = 960;
const LABEL = 116;
const FIGURE = 160;
const LANE = 38;
const DRAWN = 30;
const TOP = 16;
/** a source that is silent for this many of its usual intervals leaves a gap */
const HOLE = 2.5;

interface Drawn {
  lane: Lane;
  chart: Chart;
  series: Series;
  limit: Series | undefined;
  top: number;
}

const top = (series: Series | undefined): number => Math.max(0, ...(series?.y ?? []).filter((v): v is number => v !== null));

export function Overview({ run, open }: { run: Run; open(chart: string): void }) {
  const lanes = run.overview.flatMap((lane): Drawn[] => {
    const chart = run.charts.find((c) => c.id === lane.chart);
    const series = chart?.series[lane.series];
    if (!chart || !series) return [];
    const limit = lane.limit === null ? undefined : chart.series[lane.limit];
    return [{ lane, chart, series, limit, top: Math.max(top(series), top(limit)) }];
  });
  const offered = lanes.find((l) => l.lane.title === "offered")?.top ?? 0;
  for (const l of lanes) if (l.lane.title === "achieved") l.top = Math.max(l.top, offered);
  const ends = lanes.flatMap((l) => l.series.x_s.slice(-1));
  const length = Math.max(run.duration_s, ...ends);
  if (lanes.length === 0 || !(length > 0)) return null;
  const x = (t: number) => LABEL + (Math.max(0, t) / length) * (WIDTH - LABEL - FIGURE);
  const height = TOP + lanes.length * LANE + 18;
  const { marks } = run;
  return (
    <figure class="overview">
      <svg viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={`The run in ${lanes.length} lanes: ${lanes.map((l) => l.lane.title).join(", ")}`}>
        {run.verdict.episodes.map((e, i) => (
          <rect key={i} class={e.judged ? "shade-judged" : "shade-episode"} x={x(e.from_s)} width={Math.max(1, x(e.to_s) - x(e.from_s))} y={TOP} height={lanes.length * LANE} />
        ))}
        {lanes.map((l, i) => {
          const base = TOP + i * LANE + DRAWN + 4;
          const y = (v: number) => base - (l.top > 0 ? Math.min(1, v / l.top) : 0) * DRAWN;
          const bad = l.lane.is_bad && l.top > 0;
          return (
            <g key={i} class={bad ? "lane bad" : "lane"} onClick={() => open(l.chart.id)}>
              <title>{`${l.lane.title}: the chart has the numbers`}</title>
              <rect class="hit" x={0} y={TOP + i * LANE} width={WIDTH} height={LANE} />
              <text class="name" x={0} y={base - 8}>{l.lane.title}</text>
              <line class="base" x1={LABEL} x2={WIDTH - FIGURE} y1={base} y2={base} />
              {pieces(l.series).map((piece, k) => (
                <g key={k}>
                  <path class="area" d={`M${x(piece[0]![0])} ${base} ${piece.map(([t, v]) => `L${x(t)} ${y(v)}`).join(" ")} L${x(piece[piece.length - 1]![0])} ${base} Z`} />
                  <polyline class="line" points={piece.map(([t, v]) => `${x(t)},${y(v)}`).join(" ")} />
                </g>
              ))}
              {l.limit && pieces(l.limit).map((piece, k) => <polyline key={k} class="limit" points={piece.map(([t, v]) => `${x(t)},${y(v)}`).join(" ")} />)}
              <text class="figure" x={WIDTH} y={base - 8}>{figure(l)}</text>
            </g>
          );
        })}
        {marks.map((m, i) => (
          <line key={i} class={m.is_bad ? "mark bad" : "mark"} x1={x(m.at_s)} x2={x(m.at_s)} y1={TOP - 4} y2={TOP + lanes.length * LANE}>
            <title>{`${m.text} (${m.at_s.toFixed(1)} s)`}</title>
          </line>
        ))}
        {ticks(length).map((t) => <text key={t} class="time" x={x(t)} y={height - 3}>{clock(t, length)}</text>)}
      </svg>
      {marks.length > 0 && <figcaption class="soft small">{said(marks)}</figcaption>}
    </figure>
  );
}

function figure(l: Drawn): string {
  const { unit } = l.chart;
  return l.limit ? `at most ${inUnit(top(l.series), unit)} of ${inUnit(top(l.limit), unit)}` : `at most ${withUnit(top(l.series), unit)}`;
}

/** The unbroken pieces of a line: a missing value or a long silence ends a piece. */
function pieces(series: Series): [number, number][][] {
  const steps = series.x_s.slice(1).map((t, i) => t - (series.x_s[i] ?? t)).sort((a, b) => a - b);
  const hole = (steps[Math.floor(steps.length / 2)] ?? Infinity) * HOLE;
  const all: [number, number][][] = [];
  let last: [number, number] | null = null;
  series.x_s.forEach((t, i) => {
    const v = series.y[i];
    if (typeof v !== "number") {
      last = null;
      return;
    }
    if (last === null || t - last[0] > hole) all.push([]);
    last = [t, v];
    all[all.length - 1]?.push(last);
  });
  return all;
}

function ticks(length: number): number[] {
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600].find((s) => length / s <= 12) ?? Math.ceil(length / 10);
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, i) => i * step);
}

/** Each kind of bad mark with its times. */
function said(marks: Mark[]): string {
  const kinds = [...new Set(marks.filter((m) => m.is_bad).map((m) => m.kind))];
  const one = (kind: string) => {
    const times = marks.filter((m) => m.kind === kind).map((m) => m.at_s.toFixed(1));
    const more = times.length > 6 ? ` and ${times.length - 6} more` : "";
    return `${kind.replaceAll("_", " ")} at ${times.slice(0, 6).join(", ")} s${more}`;
  };
  return kinds.map(one).join("; ");
}

/** Brings a chart of the same page into view. */
export function bringIntoView(chart: string): void {
  document.getElementById(chartElement(chart))?.scrollIntoView({ block: "center" });
}
