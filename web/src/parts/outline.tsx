// The outline of the answer: the symptom and its episodes, the chain of causes, and a database's unfinished work. The chain
// appears twice: its longest path as one line, and all links as a list with what would change without each.

import type { ComponentChildren } from "preact";
import { ms, num, stretch } from "../format.ts";
import { findingElement, toHash } from "../link.ts";
import type { ChainLink, Debt, Episode, Finding, Verdict, Window } from "../model.ts";
import { ROLES } from "./finding.tsx";

/** Contributors, the root, its consequences; nothing if no cause is linked to another. */
export function Chain({ links, findings }: { links: ChainLink[]; findings: Finding[] }) {
  if (links.length === 0) return null;
  const found = (cause: string) => findings.find((f) => f.cause === cause);
  return (
    <div class="chain">
      <Line findings={findings} />
      <ol class="links" aria-label="Links between the causes">
        {links.map((link, i) => (
          <li key={i} class={`link ${ROLES[link.role] ? link.role : ""}`}>
            <p>
              <span class="role">{ROLES[link.role] ?? String(link.role)}</span>{" "}
              <Cause cause={link.cause} known={found(link.cause) !== undefined} />{" "}
              <span class="soft small">{tie(link, found(link.cause))}</span>
            </p>
            {link.without && <p class="small"><span class="soft">Without it:</span> {link.without}</p>}
          </li>
        ))}
      </ol>
    </div>
  );
}

function Cause({ cause, known }: { cause: string; known: boolean }) {
  return known ? <a href={`#${encodeURIComponent(findingElement(cause))}`}><code>{cause}</code></a> : <code>{cause}</code>;
}

/** The other end of a link, in words. Consequences name the root, not the other way round. */
function tie(link: ChainLink, finding: Finding | undefined): string {
  if (finding?.follows_from) return `follows from ${finding.follows_from}`;
  if (link.role !== "contributor") return "";
  return link.leads_to === "latency" ? "adds to the delay" : `adds to ${link.leads_to}`;
}

/** The longest path, as on the terminal: contributors, the root, its consequences. */
function Line({ findings }: { findings: Finding[] }) {
  const longest = (ways: string[][]) => ways.reduce((a, b) => (b.length >= a.length ? b : a), []);
  const down = longest(findings.map((f) => way(f, findings, (at) => at.follows_from)));
  const onto = findings.filter((f) => typeof f.adds_to === "string" && down.includes(f.adds_to));
  const adding = longest(onto.map((f) => beneath(f, findings)));
  const causes = [...adding, ...down];
  if (causes.length < 2) return null;
  return (
    <p class="chain-line">
      {causes.map((cause, i) => (
        <span key={i}>{i > 0 && <span class="soft"> → </span>}<code class={i === adding.length ? "is-root" : ""}>{cause}</code></span>
      ))}
    </p>
  );
}

/** The path from the top to `finding`. It stops at a cycle, which no rule produces. */
function way(finding: Finding, all: Finding[], above: (at: Finding) => string | null | undefined): string[] {
  const causes = [finding.cause];
  let cause = above(finding);
  while (typeof cause === "string" && !causes.includes(cause)) {
    causes.unshift(cause);
    const next = all.find((f) => f.cause === cause);
    cause = next && above(next);
  }
  return causes;
}

/** Contributors to `finding`, the most distant first, and itself. */
const beneath = (finding: Finding, all: Finding[]): string[] =>
  way(finding, all, (at) => all.find((f) => f.adds_to === at.cause)?.cause);

interface SlowProps {
  run: string;
  verdict: Verdict;
  charts: ReadonlySet<string>;
  follow(hash: string): void;
}

/** The chart that shows an episode, if it exists. */
const RESPONSE = "response";

/** The symptom, and every episode if there are several. */
export function Slow({ run, verdict: v, charts, follow }: SlowProps) {
  const when = (window: Window) => {
    const text = stretch(window.from_s, window.to_s);
    if (!charts.has(RESPONSE)) return <>{text}</>;
    const hash = toHash({ run, chart: RESPONSE, window });
    return <a href={hash} onClick={() => follow(hash)} title="Show it in the chart of response times">{text}</a>;
  };
  return (
    <>
      {v.symptom && <p>{v.episode && <>{when(v.episode)}: </>}{v.symptom}.</p>}
      {v.episodes.length > 0 && <Episodes episodes={v.episodes} when={when} />}
    </>
  );
}

function Episodes({ episodes, when }: { episodes: Episode[]; when(window: Window): ComponentChildren }) {
  return (
    <div class="scroll">
      <table class="episodes">
        <thead><tr><th>Episode</th><th class="n">Requests</th><th class="n">Mean response</th><th class="n">Baseline</th><th>Causes</th></tr></thead>
        <tbody>
          {episodes.map((e, i) => (
            <tr key={i} class={e.judged ? "judged" : ""}>
              <th scope="row">{when(e)}</th>
              <td class="n">{num(e.requests)}</td>
              <td class="n">{ms(e.response_ms)}</td>
              <td class="n">{e.baseline_ms > 0 ? ms(e.baseline_ms) : "–"}</td>
              <td>{e.judged ? <b>judged here</b> : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The work that must end before a fix can be measured. */
export function DebtPart({ debt: d }: { debt: Debt }) {
  return (
    <>
      <p>{sentence(d.text)}</p>
      {d.tables.length > 0 && (
        <div class="scroll">
          <table class="debt">
            <thead><tr><th>Table</th><th class="n">Dead rows</th><th class="n">Vacuum begins at</th><th class="n">New /s</th><th>Vacuum</th></tr></thead>
            <tbody>
              {d.tables.map((t, i) => (
                <tr key={i}>
                  <th scope="row">{t.table}{t.toast_of && <span class="soft"> TOAST of {t.toast_of}</span>}</th>
                  <td class="n">{num(t.dead_rows)}</td>
                  <td class="n">{num(t.fires_at_rows)}</td>
                  <td class="n">{num(t.made_per_second)}</td>
                  <td>{t.under_way ? "running" : t.dead_rows > t.fires_at_rows ? "due" : "not yet due"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** Begins with a capital and ends with a full stop. */
function sentence(text: string): string {
  const said = String(text);
  return `${said.charAt(0).toUpperCase()}${said.slice(1)}${/[.!?]$/.test(said) ? "" : "."}`;
}
