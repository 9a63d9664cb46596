// One chart on the shared time axis: a thin wrapper around uPlot, without a framework. It owns the canvas: phases and
// shaded windows as bands, the marked window, gaps, zoom by drag. The component (charts.tsx) has the legend, title and keys.

import uPlot from "uplot";
import { align, highest, logFloor, lonely, valueAt, type Aligned } from "../align.ts";
import type { TimeAxis } from "../axis.ts";
import { inUnit } from "../format.ts";
import type { Chart, Mark, Phase, Series, Slice } from "../model.ts";
import { readTheme, seriesDash, SERIES_COLOURS, type Theme } from "../theme.ts";

/** Left and right margin of every plot, in CSS pixels; the ruler uses the same, so that all of them line up. */
export const GUTTER_LEFT = 62;
export const GUTTER_RIGHT = 10;
export const PLOT_HEIGHT = 128;

export interface PlotOptions {
  log: boolean;
  hidden: ReadonlySet<number>;
  /** the same chart's series in another run, drawn pale behind */
  ghosts: Series[];
  /** called with one value per series whenever the cursor moves, or with the highest in view when it leaves */
  onValues(values: (number | null)[]): void;
}

export class Plot {
  private readonly u: uPlot;
  private readonly data: Aligned;
  /** every ghost, and the index of its twin series */
  private readonly ghosts: { twin: number; series: Series }[];
  private theme: Theme = readTheme();
  private readonly leave: () => void;

  constructor(
    private readonly chart: Chart,
    private readonly marks: Mark[],
    private readonly phases: Phase[],
    private readonly shades: Slice[],
    private readonly axis: TimeAxis,
    private readonly options: PlotOptions,
    box: HTMLElement,
  ) {
    this.ghosts = options.ghosts.map((g) => ({ twin: chart.series.findIndex((s) => s.name === g.name), series: g })).filter((g) => g.twin >= 0);
    this.data = align([...chart.series, ...this.ghosts.map((g) => g.series)]);
    const columns = options.log ? logFloor(this.data.columns) : this.data.columns;
    this.u = new uPlot(this.describe(box.clientWidth || 800), [this.data.x, ...columns] as uPlot.AlignedData, box);
    this.leave = axis.subscribe((change) => {
      if (change === "range") this.applyRange();
      else if (change === "highlight") this.u.redraw(false);
    });
    this.tellValues();
  }

  resize(width: number): void {
    if (width > 0 && width !== this.u.width) this.u.setSize({ width, height: PLOT_HEIGHT });
  }

  recolour(): void {
    this.theme = readTheme();
    this.u.redraw(false);
  }

  show(index: number, shown: boolean): void {
    this.u.setSeries(index + 1, { show: shown });
    this.ghosts.forEach((g, k) => g.twin === index && this.u.setSeries(this.chart.series.length + k + 1, { show: shown }));
  }

  /** Moves the cursor by whole samples, for the arrow keys. */
  step(by: number): void {
    const x = this.data.x.filter((t) => t >= this.axis.range.from && t <= this.axis.range.to);
    if (x.length === 0) return;
    const at = this.axis.cursor;
    let i = at === null ? (by > 0 ? -1 : x.length) : nearest(x, at);
    i = Math.min(x.length - 1, Math.max(0, i + by));
    const publish = this.u.setCursor as (at: { left: number; top: number }, fire?: boolean, publish?: boolean) => void;
    publish.call(this.u, { left: this.u.valToPos(x[i] as number, "x"), top: PLOT_HEIGHT / 2 }, true, true);
  }

  destroy(): void {
    this.leave();
    this.u.destroy();
  }

  private applyRange(): void {
    const { from, to } = this.axis.range;
    this.u.setScale("x", { min: from, max: to });
    this.tellValues();
  }

  private tellValues(): void {
    const { x, columns } = this.data;
    const index = this.u.cursor.idx;
    const { from, to } = this.axis.range;
    const pointing = this.axis.cursor !== null && typeof index === "number";
    this.options.onValues(columns.slice(0, this.chart.series.length).map((c) => (pointing ? valueAt(c, index) : highest(x, c, from, to))));
  }

  private describe(width: number): uPlot.Options {
    const { chart, axis, options } = this;
    return {
      width,
      height: PLOT_HEIGHT,
      padding: [8, GUTTER_RIGHT, 6, 0],
      legend: { show: false },
      scales: {
        x: { time: false, auto: false, min: axis.range.from, max: axis.range.to },
        y: options.log ? { distr: 3, log: 10, range: (_u, min, max) => logRange(min, max) } : { range: (_u, min, max) => linearRange(min, max) },
      },
      axes: [
        {
          size: 0,
          values: (_u, splits) => splits.map(() => ""),
          splits: () => axis.ticks(tickCount(width)),
          ticks: { show: false },
          grid: { stroke: () => this.theme.grid, width: 1 },
        },
        {
          size: GUTTER_LEFT,
          space: 30,
          gap: 6,
          font: "11px system-ui, sans-serif",
          stroke: () => this.theme.text,
          ticks: { show: false },
          grid: { stroke: () => this.theme.grid, width: 1 },
          ...(options.log ? { splits: (_u, _i, min, max) => logTicks(min, max), filter: (_u, splits) => splits } : {}),
          values: (_u, splits) => splits.map((v) => (v === null ? "" : inUnit(v, chart.unit))),
        },
      ],
      series: [
        {},
        ...chart.series.map((s, i) => this.line(s.style, i, i)),
        ...this.ghosts.map((g, k) => ({ ...this.line(g.series.style, g.twin, chart.series.length + k), alpha: 0.55, dash: [3, 3], width: 1.25 })),
      ],
      cursor: {
        y: false,
        points: { size: 6, width: 1.5 },
        drag: { x: true, y: false, setScale: false, dist: 4 },
        sync: { key: "holdup", setSeries: false, scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
        bind: { dblclick: () => () => (axis.reset(), null) },
      },
      hooks: {
        drawClear: [
          (u) => {
            this.drawPhases(u);
            for (const s of this.shades) this.fill(u, s.from_s, s.to_s, this.theme.shades[s.label] ?? null, null);
            this.drawMarks(u);
            this.drawMark(u);
          },
        ],
        setCursor: [
          (u) => {
            const { left } = u.cursor;
            axis.point(typeof left === "number" && left >= 0 ? u.posToVal(left, "x") : null);
            this.tellValues();
          },
        ],
        setSelect: [
          (u) => {
            if (u.select.width <= 0) return;
            const from = u.posToVal(u.select.left, "x");
            const to = u.posToVal(u.select.left + u.select.width, "x");
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            axis.zoom(from, to);
          },
        ],
      },
    };
  }

  private line(style: string, index: number, column: number): uPlot.Series {
    const stroke = () => this.theme.series[index % SERIES_COLOURS] ?? "gray";
    const dash = seriesDash(index);
    const shared = { stroke, width: 1.5, dash, show: !this.options.hidden.has(index) };
    if (style === "points") return { ...shared, paths: () => null, points: { show: true, size: 4, fill: stroke, width: 0 } };
    const alone = lonely(this.data.columns[column] ?? []);
    const points = { show: false, size: 4, fill: stroke, filter: () => (alone.length > 0 ? alone : null) };
    const paths = style === "step" ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.();
    return { ...shared, points, ...(paths ? { paths } : {}) };
  }

  private drawPhases(u: uPlot): void {
    this.phases.forEach((phase, i) => {
      if (i % 2 === 1) this.fill(u, phase.from_s, phase.to_s, this.theme.band, null);
    });
  }

  private drawMarks(u: uPlot): void {
    for (const mark of this.marks) this.fill(u, mark.at_s, mark.at_s, mark.is_bad ? this.theme.bad : this.theme.grid, null);
  }

  private drawMark(u: uPlot): void {
    const mark = this.axis.highlight;
    if (!mark?.window) return;
    const here = mark.chart === this.chart.id;
    this.fill(u, mark.window.from_s, mark.window.to_s, here ? this.theme.mark : null, here ? this.theme.markEdge : this.theme.grid);
  }

  private fill(u: uPlot, from: number, to: number, colour: string | null, edge: string | null): void {
    const { left, top, width, height } = u.bbox;
    const at = (t: number) => Math.round(Math.min(left + width, Math.max(left, u.valToPos(t, "x", true))));
    const [x0, x1] = [at(from), at(to)];
    if (x1 <= x0 && (from > this.axis.range.to || to < this.axis.range.from)) return;
    const ratio = devicePixelRatio || 1;
    u.ctx.save();
    if (colour !== null) {
      u.ctx.fillStyle = colour;
      u.ctx.fillRect(x0, top, Math.max(x1 - x0, ratio), height);
    }
    if (edge !== null) {
      u.ctx.fillStyle = edge;
      for (const x of [x0, x1]) u.ctx.fillRect(x - ratio / 2, top, ratio, height);
    }
    u.ctx.restore();
  }
}

/** How many time ticks fit a plot this wide. */
export const tickCount = (width: number): number => Math.max(2, Math.floor((width - GUTTER_LEFT - GUTTER_RIGHT) / 80));

/** Powers of ten, and fewer of them when there are many; 2 and 5 as well when hardly one lies in view. */
function logTicks(min: number, max: number): number[] {
  const from = Math.floor(Math.log10(min));
  const to = Math.ceil(Math.log10(max));
  const tens = Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
  const inside = (v: number) => v >= min * 0.999 && v <= max * 1.001;
  const few = tens.filter(inside);
  if (few.length < 2) return tens.flatMap((v) => [v, 2 * v, 5 * v]).filter(inside);
  const every = Math.ceil(few.length / 5);
  return few.filter((_, i) => i % every === 0);
}

function logRange(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [1, 10];
  return [min / 1.4, max * 1.4];
}

function linearRange(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  const lo = Math.min(0, min);
  const hi = Math.max(0, max);
  const room = (hi - lo || 1) * 0.06;
  return [lo < 0 ? lo - room : 0, hi + room];
}

function nearest(x: number[], at: number): number {
  let best = 0;
  x.forEach((t, i) => {
    if (Math.abs(t - at) < Math.abs((x[best] as number) - at)) best = i;
  });
  return best;
}
