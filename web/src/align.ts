// Brings the series of one chart onto one list of instants, as the plot library wants them. It never invents a value:
// `undefined` means that a series has no sample there and its line goes on; null stays a gap.

import type { Series } from "./model.ts";

export type Column = (number | null | undefined)[];

export interface Aligned {
  x: number[];
  columns: Column[];
}

export function align(series: Series[]): Aligned {
  const x = [...new Set(series.flatMap((s) => s.x_s.filter(Number.isFinite)))].sort((a, b) => a - b);
  const at = new Map(x.map((t, i) => [t, i]));
  const columns = series.map((s) => {
    const column: Column = new Array(x.length).fill(undefined);
    s.x_s.forEach((t, i) => {
      const k = at.get(t);
      if (k !== undefined) column[k] = s.y[i] ?? null;
    });
    return column;
  });
  return { x, columns };
}

/** Zero has no logarithm: for drawing only, values at or below it are drawn at the smallest positive decade. */
export function logFloor(columns: Column[]): Column[] {
  let least = Infinity;
  for (const column of columns) for (const v of column) if (typeof v === "number" && v > 0 && v < least) least = v;
  const floor = least === Infinity ? 1 : 10 ** Math.floor(Math.log10(least));
  return columns.map((column) => column.map((v) => (typeof v === "number" && v <= 0 ? floor : v)));
}

/** Values without a neighbour on either side, which a line alone would not show. */
export function lonely(column: Column): number[] {
  const known = column.map((v, i) => [v, i] as const).filter(([v]) => v !== undefined);
  return known
    .filter(([v], k) => typeof v === "number" && (known[k - 1]?.[0] ?? null) === null && (known[k + 1]?.[0] ?? null) === null)
    .map(([, i]) => i);
}

/** The value of the series at index `i`: its last sample at or before it. */
export function valueAt(column: Column, i: number): number | null {
  for (let k = i; k >= 0; k--) if (column[k] !== undefined) return column[k] as number | null;
  return null;
}

/** The highest value between two instants, or null when there is none. */
export function highest(x: number[], column: Column, from: number, to: number): number | null {
  let best: number | null = null;
  x.forEach((t, i) => {
    const v = column[i];
    if (t >= from && t <= to && typeof v === "number" && (best === null || v > best)) best = v;
  });
  return best;
}
