// One piece of evidence: its sentence, linked to the chart that shows it, and its place in the recording. Following the
// link sets the page's only highlight (app.tsx).

import { num, stretch } from "../format.ts";
import { toHash } from "../link.ts";
import type { Evidence } from "../model.ts";

export interface EvidenceProps {
  run: string;
  evidence: Evidence[];
  /** ids of the existing charts: a link to another would be plain text */
  charts: ReadonlySet<string>;
  follow(hash: string): void;
}

export function EvidenceList({ run, evidence, charts, follow }: EvidenceProps) {
  if (evidence.length === 0) return null;
  return (
    <ul class="evidence">
      {evidence.map((e, i) => {
        const linked = typeof e.chart === "string" && charts.has(e.chart);
        const hash = linked ? toHash({ run, chart: e.chart, window: e.window }) : "";
        const plain = e.text || `${e.table}.${e.column}`;
        return (
          <li key={i}>
            {linked ? <a href={hash} onClick={() => follow(hash)} title="Show it in its chart">{plain}</a> : plain}
            <div class="source">
              {observed(e)}
              {e.window && <span class="n">{stretch(e.window.from_s, e.window.to_s)}</span>}
              <code>{pointer(e)}</code>
            </div>
          </li>
        );
      })}
    </ul>
  );
}

function observed(e: Evidence) {
  const has = (v: unknown) => v !== null && v !== undefined && v !== "";
  if (!has(e.observed)) return null;
  return (
    <span>
      observed <b class="n">{said(e.observed)}</b>
      {has(e.expected) && <>, expected <b class="n">{said(e.expected)}</b></>}
    </span>
  );
}

const said = (v: unknown): string => (typeof v === "number" ? num(v) : String(v));

/** "samples.value{pool="main"}": table, column and labels as one would select them. */
function pointer(e: Evidence): string {
  const labels = Object.entries(e.labels).map(([k, v]) => `${k}="${String(v)}"`);
  return `${e.table}.${e.column}${labels.length > 0 ? `{${labels.join(", ")}}` : ""}`;
}
