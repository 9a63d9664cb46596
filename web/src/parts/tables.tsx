// The report's plain tables: before and after, what the client saw, coverage; and the two lists of suspects.

import { inUnit, num, percent, unitName, withUnit, words } from "../format.ts";
import type { Cleared, Comparison, Coverage, Load, NotJudged } from "../model.ts";
import { EvidenceList, type EvidenceProps } from "./evidence.tsx";
import { Command } from "./finding.tsx";

export function ComparisonTable({ comparison: c }: { comparison: Comparison }) {
  return (
    <div class="scroll">
      <table class="comparison">
        <thead><tr><th>Indicator</th><th class="n">{c.before}</th><th class="n">{c.after}</th><th class="n">Change</th><th>Verdict</th></tr></thead>
        <tbody>
          {c.rows.map((r, i) => (
            <tr key={i}>
              <th scope="row">{r.indicator}</th>
              <td class="n">{withUnit(r.before, r.unit)}</td>
              <td class="n">{withUnit(r.after, r.unit)}</td>
              <td class="n">{change(r.before, r.after, r.unit)}</td>
              <td><span class={`word ${MOOD[r.verdict] ?? ""}`}>{r.verdict}</span></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const MOOD: Record<string, string> = { better: "good", worse: "bad", same: "", different: "", unclear: "unsure" };

/** A factor where it is large, percent where it is small, points where the value is a share. */
function change(before: number | null, after: number | null, unit: string): string {
  if (typeof before !== "number" || typeof after !== "number") return "–";
  if (before === after) return "none";
  const sign = after > before ? "+" : "\u2212";
  if (unit === "ratio") return `${sign}${inUnit(Math.abs(after - before), unit)} points`;
  if (before <= 0 || after <= 0) return `${sign}${num(Math.abs(after - before))}`;
  const factor = after / before;
  const rough = (f: number) => num(f < 100 ? f : Number(f.toPrecision(2)));
  if (factor >= 2) return `× ${rough(factor)}`;
  if (factor <= 0.5) return `÷ ${rough(1 / factor)}`;
  return `${sign}${percent(Math.abs(factor - 1))}`;
}

export function LoadTable({ load }: { load: Load }) {
  const kinds = [["response", "response_ms"], ["service", "service_ms"], ["send lag", "send_lag_ms"]] as const;
  return (
    <>
      {load.generator_limited && <p class="warn">The load generator itself was a limit in this run: its delays are part of the response times.</p>}
      <Generator load={load} />
      <div class="scroll">
        <table class="load">
          <thead>
            <tr><th>Operation</th><th class="n">Offered /s</th><th class="n">Achieved /s</th><th class="n">Errors</th><th>Time, ms</th>
              <th class="n">mean</th><th class="n">p50</th><th class="n">p90</th><th class="n">p95</th><th class="n">p99</th><th class="n">p99.9</th><th class="n">max</th></tr>
          </thead>
          <tbody>
            {load.operations.flatMap((o, i) => kinds.map(([name, key], k) => {
              const q = o[key] ?? {};
              return (
                <tr key={`${i}.${k}`} class={k === 0 ? "first" : "more"}>
                  {k === 0 && <>
                    <th scope="rowgroup" rowSpan={3}>{o.operation}</th>
                    <td class="n" rowSpan={3}>{num(o.offered)}</td><td class="n" rowSpan={3}>{num(o.achieved)}</td><td class="n" rowSpan={3}>{num(o.errors)}</td>
                  </>}
                  <td>{name}</td>
                  {[q.mean, q.p50, q.p90, q.p95, q.p99, q.p999, q.max].map((v, c) => <td key={c} class="n">{num(v)}</td>)}
                </tr>
              );
            }))}
          </tbody>
        </table>
      </div>
      <p class="soft small">Response time counts from when a request was due, service time from when it was sent; send lag is the generator’s own delay.</p>
    </>
  );
}

/** How the load was put on, and how far that may be trusted. */
function Generator({ load }: { load: Load }) {
  const { validity: v, warm_up: w } = load;
  const how = [`${load.model ?? "open"} model`, load.protocol, load.loops > 1 ? `${load.loops} loops` : null, load.shard ? `shard ${load.shard} of the schedule` : null];
  return (
    <div class="generator">
      {v.text && <p>{how.filter(Boolean).join(", ")}: {v.text}.</p>}
      {v.reasons.length + v.fixes.length > 0 && (
        <ul>
          {v.reasons.map((r, i) => <li key={i}>{r.text}</li>)}
          {v.fixes.map((f, i) => <li key={`f${i}`} class="soft">{f.text} {f.command && <code>{f.command}</code>}</li>)}
        </ul>
      )}
      {load.model === "closed" && (
        <p class="soft small">In a closed model a slow service is asked less: response times leave out the waits of users who would have come meanwhile.</p>
      )}
      {w.text && <p>Warm-up: {w.text}. Counts are of the whole run.</p>}
    </div>
  );
}

export function ClearedList({ cleared, ...rest }: Omit<EvidenceProps, "evidence"> & { cleared: Cleared[] }) {
  return (
    <dl class="suspects">
      {cleared.map((c, i) => (
        <div key={i}><dt>{c.title || words(c.cause)}</dt><dd><EvidenceList evidence={c.evidence} {...rest} /></dd></div>
      ))}
    </dl>
  );
}

export function NotJudgedList({ items }: { items: NotJudged[] }) {
  return (
    <dl class="suspects">
      {items.map((s, i) => (
        <div key={i}>
          <dt>{s.title || words(s.cause)}</dt>
          <dd><p>{s.missing}</p>{s.enable && <><p class="soft small">To turn it on:</p><Command text={s.enable} /></>}</dd>
        </div>
      ))}
    </dl>
  );
}

const STATE: Record<string, string> = { complete: "good", partial: "unsure", absent: "bad" };

export function CoverageTable({ coverage }: { coverage: Coverage[] }) {
  return (
    <div class="scroll">
      <table class="coverage">
        <thead><tr><th>Source</th><th>State</th><th>Why</th><th>To see more</th><th class="n">Own cost, of a core</th></tr></thead>
        <tbody>
          {coverage.map((c, i) => (
            <tr key={i}>
              <th scope="row">{c.source}</th>
              <td><span class={`word ${STATE[c.state] ?? ""}`}>{c.state}</span></td>
              <td>{c.why}</td>
              <td>{c.enable && <code>{c.enable}</code>}</td>
              <td class="n">{typeof c.cpu_ratio === "number" ? `${inUnit(c.cpu_ratio, "ratio")} ${unitName("ratio")}` : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

