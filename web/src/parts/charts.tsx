// All charts of a run, stacked on one time axis under one ruler. Each has its title, a legend with live values, its
// keys and its numbers as a table. plot.ts draws them.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { align } from "../align.ts";
import type { TimeAxis } from "../axis.ts";
import { clock, inUnit, num, unitName } from "../format.ts";
import { chartElement } from "../link.ts";
import type { Chart, Mark, Phase, Run, Series, Slice } from "../model.ts";
import { onThemeChange, seriesDash, seriesVar } from "../theme.ts";
import { Plot, PLOT_HEIGHT } from "./plot.ts";
import { Ruler } from "./ruler.tsx";

interface ChartsProps {
  charts: Chart[];
  marks: Mark[];
  phases: Phase[];
  /** windows to shade */
  shades: Slice[];
  axis: TimeAxis;
  /** runs whose curves can be drawn, pale, behind this one's; all clocks start at zero */
  others: Run[];
}

export function Charts({ charts, marks, phases, shades, axis, others }: ChartsProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [behind, setBehind] = useState<Run | null>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || typeof ResizeObserver === "undefined") return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <div class="charts" ref={box}>
      <Ruler axis={axis} phases={phases} width={width}>
        {others.map((run) => (
          <button key={run.name} type="button" aria-pressed={behind === run} title={`Draw the same curves of ${run.name}, dashed and pale`} onClick={() => setBehind(behind === run ? null : run)}>
            with {run.name}
          </button>
        ))}
      </Ruler>
      {shades.length > 0 && (
        <p class="soft small shades">
          Shaded:
          {SHADES.filter(([label]) => shades.some((s) => s.label === label)).map(([label, text]) => <span key={label}><i class={`shade ${label}`} /> {text}</span>)}
        </p>
      )}
      {charts.map((chart) => (
        <Figure key={chart.id} chart={chart} marks={marks} phases={phases} shades={shades} axis={axis} width={width} ghosts={behind?.charts.find((c) => c.id === chart.id)?.series} />
      ))}
    </div>
  );
}

const SHADES = [
  ["episode_judged", "episode: causes are judged here"],
  ["episode", "another episode"],
  ["warm_up", "warm-up, excluded from response times"],
  ["capped", "capped: the limit on requests in flight was reached"],
  ["generator_limited", "the load generator could not keep up"],
] as const;

const LATENCY = /^(ns|us|µs|ms|s|seconds|milliseconds)$/;

interface FigureProps {
  chart: Chart;
  marks: Mark[];
  phases: Phase[];
  shades: Slice[];
  axis: TimeAxis;
  width: number;
  ghosts: Series[] | undefined;
}

function Figure({ chart, marks, phases, shades, axis, width, ghosts }: FigureProps) {
  const canvas = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const values = useRef<(HTMLElement | null)[]>([]);
  const [log, setLog] = useState(chart.log === true);
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set());
  const [table, setTable] = useState(false);
  const [marked, setMarked] = useState(false);

  useEffect(() => {
    const look = () => setMarked(axis.highlight?.chart === chart.id);
    look();
    return axis.subscribe((change) => change === "highlight" && look());
  }, [axis, chart]);

  useLayoutEffect(() => {
    const box = canvas.current;
    if (!box || !canDraw()) return;
    // Written straight into the text nodes, because a pointer moves sixty times a second over ten charts.
    const onValues = (now: (number | null)[]) =>
      now.forEach((v, i) => {
        const cell = values.current[i];
        if (cell) cell.textContent = inUnit(v, chart.unit);
      });
    const drawn = new Plot(chart, marks, phases, shades, axis, { log, hidden, ghosts: ghosts ?? [], onValues }, box);
    plot.current = drawn;
    const leave = onThemeChange(() => drawn.recolour());
    return () => {
      leave();
      plot.current = null;
      drawn.destroy();
    };
  }, [chart, marks, phases, shades, axis, log, ghosts]);

  useEffect(() => plot.current?.resize(width), [width]);

  const toggle = (i: number) => {
    const next = new Set(hidden);
    const shown = next.delete(i);
    if (!shown) next.add(i);
    setHidden(next);
    plot.current?.show(i, shown);
  };

  const keys: Record<string, () => void> = {
    ArrowLeft: () => plot.current?.step(-1),
    ArrowRight: () => plot.current?.step(1),
    "+": () => axis.scale(0.5),
    "=": () => axis.scale(0.5),
    "-": () => axis.scale(2),
    "0": () => axis.reset(),
    Escape: () => (axis.mark(null), axis.reset()),
  };

  return (
    <figure class={marked ? "chart marked" : "chart"} id={chartElement(chart.id)} tabIndex={-1}>
      <figcaption>
        <h3>{chart.title}<span class="soft unit">{unitName(chart.unit)}</span></h3>
        <div class="legend">
          {chart.series.map((s, i) => (
            <button key={i} type="button" aria-pressed={!hidden.has(i)} title={hidden.has(i) ? "Show this series" : "Hide this series"} onClick={() => toggle(i)}>
              <i class={`key ${s.style}`} style={{ color: seriesVar(i), borderTopStyle: seriesDash(i).length > 0 ? "dashed" : "solid" }} />
              {s.name} <b class="n" ref={(e) => { values.current[i] = e; }} />
            </button>
          ))}
        </div>
        <div class="tools">
          {(chart.log || LATENCY.test(chart.unit)) && (
            <button type="button" aria-pressed={log} onClick={() => setLog(!log)} title="Logarithmic scale">log</button>
          )}
          <button type="button" aria-pressed={table} onClick={() => setTable(!table)} title="The numbers in view">table</button>
        </div>
      </figcaption>
      <div
        class="plot" ref={canvas} tabIndex={0} role="group" style={{ minHeight: `${PLOT_HEIGHT}px` }}
        aria-label={`${chart.title}, ${unitName(chart.unit)}. Arrow keys move the cursor, plus and minus zoom, 0 shows all.`}
        onKeyDown={(e) => {
          const act = e.ctrlKey || e.metaKey || e.altKey ? undefined : keys[e.key];
          if (!act) return;
          e.preventDefault();
          act();
        }}
      />
      {table && <Numbers chart={chart} axis={axis} />}
    </figure>
  );
}

function Numbers({ chart, axis }: { chart: Chart; axis: TimeAxis }) {
  const [range, setRange] = useState(axis.range);
  useEffect(() => axis.subscribe((change) => change === "range" && setRange(axis.range)), [axis]);
  const { x, columns } = align(chart.series);
  const rows = x.map((t, i) => ({ t, i })).filter(({ t }) => t >= range.from && t <= range.to);
  return (
    <div class="scroll numbers" tabIndex={0} role="region" aria-label={`${chart.title}, numbers`}>
      <table>
        <thead><tr><th class="n">time</th>{chart.series.map((s, i) => <th key={i} class="n">{s.name}</th>)}</tr></thead>
        <tbody>
          {rows.slice(0, ROWS_MAX).map(({ t, i }) => (
            <tr key={t}>
              <td class="n">{range.to - range.from < 120 ? `${num(t)} s` : clock(t, range.to - range.from)}</td>
              {columns.map((c, k) => <td key={k} class="n">{c[i] === undefined ? "" : c[i] === null ? "gap" : inUnit(c[i], chart.unit)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > ROWS_MAX && <p class="soft small">{rows.length - ROWS_MAX} more: zoom in to see them.</p>}
    </div>
  );
}

/** Most rows of a chart's table; a longer one makes the page slow to scroll. */
const ROWS_MAX = 1000;

/** Whether the browser has a canvas. Without one (a test, a very old browser) the tables still work. */
function canDraw(): boolean {
  try {
    return document.createElement("canvas").getContext("2d") !== null && typeof matchMedia === "function";
  } catch {
    return false;
  }
}
