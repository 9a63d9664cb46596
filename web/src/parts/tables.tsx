// The report's plain tables: recordings side by side, the client's figures, sources; and the lists of cleared and unchecked causes.

import { inUnit, num, percent, unitName, withUnit, words } from "../format.ts";
import type { Against, Cleared, Comparison, ComparisonRow, Coverage, Dear, Load, NotJudged } from "../model.ts";
import { EvidenceList, type EvidenceProps } from "./evidence.tsx";
import { Command } from "./finding.tsx";

export function ComparisonTable({ comparison: c }: { comparison: Comparison }) {
  const told = c.rows.filter((row) => row.is_headline || row.cells.some((cell) => cell.against && TELLS.has(cell.against.verdict)));
  const others = c.rows.filter((row) => !told.includes(row));
  return (
    <>
      {c.columns.filter((column) => column.headline).map((column, i) => (
        <p key={i}><span class={`word ${MOOD[column.verdict ?? ""] ?? ""}`}>{words(column.verdict ?? "")}</span> {column.headline}</p>
      ))}
      <Rows comparison={c} rows={told} />
      {others.length > 0 && (
        <details>
          <summary>{others.length} more rows without a clear difference</summary>
          <Rows comparison={c} rows={others} />
        </details>
      )}
      <ul class="told">
        {[...c.notes, ...c.columns.flatMap((column) => column.left_out.map((text) => `Left out of ${column.name}: ${text}`))].map((text, i) => <li key={i}>{text}</li>)}
      </ul>
    </>
  );
}

/** What is dear at its level, and the command that ends it. */
export function DearList({ all }: { all: Dear[] }) {
  return (
    <ul class="told">
      {all.map((dear, i) => (
        <li key={i}>{dear.text} <code>{dear.cause}</code>{dear.command && <Command text={dear.command} />}</li>
      ))}
    </ul>
  );
}

function Rows({ comparison: c, rows }: { comparison: Comparison; rows: ComparisonRow[] }) {
  return (
    <div class="scroll">
      <table class="comparison">
        <thead>
          <tr>
            <th>Indicator</th>
            {c.columns.flatMap((column, i) => [
              <th key={`v${i}`} class="n">{column.name}</th>,
              ...(i > 0 ? [<th key={`c${i}`} class="n">Change (95 % interval)</th>, <th key={`w${i}`}>Verdict</th>] : []),
            ])}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, r) => (
            <tr key={r}>
              <th scope="row">{row.indicator}</th>
              {row.cells.flatMap((cell, i) => [
                <td key={`v${i}`} class="n">{cell.is_least && "at least "}{withUnit(cell.value, row.unit)}</td>,
                ...(i > 0 ? [<td key={`c${i}`} class="n">{cell.against ? change(cell.against, row.unit) : "–"}</td>, <td key={`w${i}`}><Verdict against={cell.against} /></td>] : []),
              ])}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Verdict({ against }: { against: Against | null }) {
  if (!against || against.verdict === "missing") return <span>–</span>;
  const repeats = against.repeats_wanted ? `; ${against.repeats_wanted} repeats would` : "";
  const why = against.verdict === "not_comparable" && against.why ? ` because ${against.why}` : "";
  return <span class={`word ${MOOD[against.verdict] ?? ""}`} title={against.why ?? ""}>{VERDICTS[against.verdict] ?? words(against.verdict)}{repeats}{why}</span>;
}

const TELLS = new Set(["better", "worse", "different"]);

const VERDICTS: Record<string, string> = { cant_tell: "can't tell" };

const MOOD: Record<string, string> = { better: "good", worse: "bad", mixed: "unsure", cant_tell: "unsure", not_comparable: "unsure" };

/** Percent with its interval, a factor if it is large, or the difference if a ratio is meaningless. */
function change(a: Against, unit: string): string {
  if (typeof a.difference !== "number" || typeof a.low !== "number" || typeof a.high !== "number") return "–";
  const sign = (v: number) => (v > 0 ? "+" : v < 0 ? "\u2212" : "");
  // Near −100 % a whole percent is too coarse.
  const share = (v: number) => (v < -0.99 ? `${num(Math.round(Math.abs(v) * 1000) / 10)}\u2009%` : percent(Math.abs(v)));
  const ratio = (v: number) => (v >= 9 ? `× ${num(1 + v)}` : `${sign(v)}${share(v)}`);
  const plain = (v: number) => `${sign(v)}${unit === "ratio" ? `${inUnit(Math.abs(v), unit)} points` : num(Math.abs(v))}`;
  const one = typeof a.change_ratio === "number" ? ratio : plain;
  return `${one(a.change_ratio ?? a.difference)} (${one(a.low)} to ${one(a.high)})`;
}

export function LoadTable({ load }: { load: Load }) {
  const kinds = [["response", "response_ms"], ["service", "service_ms"], ["send lag", "send_lag_ms"]] as const;
  return (
    <>
      {load.generator_limited && <p class="warn">The load generator was a limit in this run: its delays are part of the response times.</p>}
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
                    <td class="n" rowSpan={3}>{num(o.offered)}</td><td class="n" rowSpan={3}>{num(o.achieved)}</td><td class="n" rowSpan={3}>{o.failed ?? num(o.errors)}</td>
                  </>}
                  <td>{name}</td>
                  {[q.mean, q.p50, q.p90, q.p95, q.p99, q.p999, q.max].map((v, c) => <td key={c} class="n">{num(v)}</td>)}
                </tr>
              );
            }))}
          </tbody>
        </table>
      </div>
      <p class="soft small">Response time counts from the time a request was due, service time from the time it was sent; send lag is the generator’s own delay.</p>
    </>
  );
}

/** How the load was generated, and how valid it is. */
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
        <p class="soft small">Closed model: a slow service gets fewer requests, so response times miss the waits of users who would have come meanwhile.</p>
      )}
      {w.text && <p>Warm-up: {w.text}. Counts cover the whole run.</p>}
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
          <dd><p>needs {s.missing}</p>{s.enable && <><p class="soft small">Turn on:</p><Command text={s.enable} /></>}</dd>
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
        <thead><tr><th>Source</th><th>State</th><th>Why</th><th>Turn on</th><th class="n">Own cost, of a core</th></tr></thead>
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

