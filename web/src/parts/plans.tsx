// The plans that a finding points at, as trees. The first seen comes first, so that a changed plan reads from before to
// after. Trees are indented text, which wraps on a phone and can be copied.

import { ms, num } from "../format.ts";
import type { Finding, Plan, PlanNode } from "../model.ts";

/** Deepest indentation; deeper nodes get the same. */
const DEPTH_MAX = 12;

export function Plans({ finding, plans }: { finding: Finding; plans: Plan[] }) {
  const pointed = (p: Plan) =>
    finding.evidence.some((e) => e.table === "plans" && e.labels.digest === p.digest && e.labels.shape === p.shape && e.labels.kind === p.kind);
  const shown = plans.filter(pointed);
  if (shown.length === 0) return null;
  return (
    <details class="plans" open={finding.role === "root"}>
      <summary>{shown.length > 1 ? "Plans, the first seen first" : "Plan"}</summary>
      <div class="plans-side">
        {shown.map((p, i) => (
          <div key={i} class="plan">
            <p class="small">
              <span class="soft">shape</span> <code>{p.shape}</code>{" "}
              <span class="soft">seen {when(p)}{typeof p.median_ms === "number" && <>, median <b class="n">{ms(p.median_ms)}</b></>}</span>
            </p>
            <ul>
              {p.nodes.map((n, k) => (
                <li key={k} style={{ marginLeft: `${Math.min(n.depth, DEPTH_MAX) * 0.9}rem` }}>
                  <code>{n.name}</code> <span class="soft small n">{rows(n)}</span>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </div>
    </details>
  );
}

const when = (p: Plan): string =>
  p.seen === 1 ? `once at ${num(p.from_s)} s` : `${num(p.seen)} times from ${num(p.from_s)} to ${num(p.to_s)} s`;

function rows(n: PlanNode): string {
  const parts = [
    typeof n.rows_estimated === "number" ? `${num(n.rows_estimated)} ${n.rows_estimated === 1 ? "row" : "rows"} expected` : "",
    typeof n.rows_actual === "number" ? `${num(n.rows_actual)} actual` : "",
    typeof n.loops === "number" && n.loops > 1 ? `${num(n.loops)} runs` : "",
  ];
  return parts.filter(Boolean).join(", ");
}
