// The reader's place as the fragment of the address: "#faulty", or "#faulty/pool/4-9" for a chart with a window marked.
// Evidence links are therefore plain links: they work by keyboard, with the back button, and when copied.

import type { Window } from "./model.ts";

export interface Place {
  run: string;
  chart: string | null;
  window: Window | null;
}

export function toHash(place: Place): string {
  const parts = [place.run];
  if (place.chart !== null) parts.push(place.chart);
  if (place.chart !== null && place.window) parts.push(`${place.window.from_s}~${place.window.to_s}`);
  return "#" + parts.map(encodeURIComponent).join("/");
}

export function fromHash(hash: string): Place | null {
  let parts: string[];
  try {
    parts = hash.replace(/^#/, "").split("/").map(decodeURIComponent);
  } catch {
    return null;
  }
  const [run, chart, span] = parts;
  if (!run) return null;
  const [from, to] = (span ?? "").split("~").map(Number);
  const window = span && Number.isFinite(from) && Number.isFinite(to) ? { from_s: from as number, to_s: to as number } : null;
  return { run, chart: chart || null, window };
}

/** The element id of a chart's figure. */
export const chartElement = (chart: string): string => `chart:${chart}`;

/** The element id of a finding's note. */
export const findingElement = (cause: string): string => `finding:${cause}`;
