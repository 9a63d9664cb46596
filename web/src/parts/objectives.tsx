// The result of each objective: its value against its limit, and the windows that missed it.

import { num, stretch, withUnit } from "../format.ts";
import type { Objective, Window } from "../model.ts";

const WORDS: Record<string, [string, string]> = { met: ["met", "good"], missed: ["missed", "bad"], not_judged: ["not judged", "unsure"] };

const UNITS: Record<string, string> = { per_second: "/s" };

export function ObjectivesTable({ objectives, aborted }: { objectives: Objective[]; aborted: string | null }) {
  return (
    <>
      {aborted && <p class="warn">The load was {aborted}.</p>}
      <div class="scroll">
        <table class="objectives">
          <thead><tr><th>Objective</th><th>Verdict</th><th class="n">Value</th><th>Worst</th><th>First missed</th><th class="n">Windows missed</th></tr></thead>
          <tbody>
            {objectives.map((o, i) => {
              const [word, mood] = WORDS[o.state] ?? [String(o.state), "unsure"];
              return (
                <tr key={i}>
                  <th scope="row">{o.text}</th>
                  <td><span class={`word ${mood}`}>{word}</span></td>
                  {o.state === "not_judged"
                    ? <td colSpan={4}>{o.why}</td>
                    : <>
                      <td class="n">{withUnit(o.value, UNITS[o.unit] ?? o.unit)}</td>
                      <td>{o.worst_window ? when(o.worst_window) : "the whole run"}</td>
                      <td>{o.first_window ? when(o.first_window) : "–"}</td>
                      <td class="n">{o.windows > 0 ? `${num(o.windows_missed)} of ${num(o.windows)}` : "–"}</td>
                    </>}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

const when = (w: Window): string => stretch(w.from_s, w.to_s);
