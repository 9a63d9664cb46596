// The time axis that all charts of a run share: the range in view, the cursor, and the window that a piece of evidence
// points at. Charts and the ruler subscribe to it. It draws nothing and knows no chart.

import type { Window } from "./model.ts";

export interface Range {
  from: number;
  to: number;
}

export interface Highlight {
  chart: string;
  window: Window | null;
}

type Change = "range" | "cursor" | "highlight";

export class TimeAxis {
  readonly full: Range;
  range: Range;
  /** seconds since the run's start, or null when the pointer is elsewhere */
  cursor: number | null = null;
  highlight: Highlight | null = null;
  private readonly listeners = new Set<(change: Change) => void>();

  constructor(full: Range) {
    this.full = full.to > full.from ? full : { from: full.from, to: full.from + 1 };
    this.range = this.full;
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(change: Change): void {
    for (const listener of this.listeners) listener(change);
  }

  get zoomed(): boolean {
    return this.range.from > this.full.from || this.range.to < this.full.to;
  }

  /** Shows `from`..`to`, kept inside the run and never narrower than a thousandth of it. */
  zoom(from: number, to: number): void {
    const least = (this.full.to - this.full.from) / 1000;
    const lo = Math.max(this.full.from, Math.min(from, to));
    const hi = Math.min(this.full.to, Math.max(from, to));
    if (!(hi - lo >= least)) return;
    this.range = { from: lo, to: hi };
    this.tell("range");
  }

  reset(): void {
    this.range = this.full;
    this.tell("range");
  }

  /** Zooms by `factor` (below 1 is closer) around the cursor, or the middle. */
  scale(factor: number): void {
    const { from, to } = this.range;
    const at = this.cursor ?? (from + to) / 2;
    this.zoom(at - (at - from) * factor, at + (to - at) * factor);
  }

  point(at: number | null): void {
    if (at === this.cursor) return;
    this.cursor = at;
    this.tell("cursor");
  }

  /** Marks a window; if it lies outside the view, the view returns to the whole run. */
  mark(highlight: Highlight | null): void {
    this.highlight = highlight;
    const window = highlight?.window;
    if (window && (window.to_s > this.range.to || window.from_s < this.range.from)) this.reset();
    this.tell("highlight");
  }

  /** Round tick positions in view, about `count` of them. */
  ticks(count: number): number[] {
    const { from, to } = this.range;
    const step = tickStep((to - from) / Math.max(1, count));
    const ticks: number[] = [];
    for (let k = Math.ceil(from / step - 1e-9); k * step <= to + step * 1e-9; k++) ticks.push(Number((k * step).toFixed(6)));
    return ticks;
  }
}

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

function tickStep(least: number): number {
  if (least >= 1) return STEPS_S.find((s) => s >= least) ?? Math.ceil(least / 86400) * 86400;
  const scale = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((m) => m * scale).find((s) => s >= least * (1 - 1e-9)) ?? scale * 10;
}
