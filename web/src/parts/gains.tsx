// What a fix gives back: each part of an operation at half its time, and how much sooner the request then ends. A part
// that other work covers takes time and gives back nothing.

import { ms, num, words } from "../format.ts";
import type { CriticalPath } from "../model.ts";

export function Gains({ paths }: { paths: CriticalPath[] }) {
  return (
    <>
      {paths.map((path, i) => (
        <section key={i} class="operation">
          <h3>{path.operation} <span class="soft">of {path.service}: mean {ms(path.mean_ms)}{path.p99_ms === null ? "" : `, p99 ${ms(path.p99_ms)}`}, {num(path.requests)} traced requests</span></h3>
          <div class="scroll">
            <table class="gains">
              <thead>
                <tr><th>ms of a request</th><th>in</th><th class="n">takes</th><th class="n">awaited</th><th class="n">faster by</th><th class="n">saves of the mean</th><th class="n">of p99</th></tr>
              </thead>
              <tbody>
                {path.parts.map((part, k) => (
                  <tr key={k}>
                    <th scope="row">{words(part.part)}</th>
                    <td>{part.what}{part.service === path.service ? "" : <span class="soft"> in {part.service}</span>}</td>
                    <td class="n">{num(part.ms)}</td>
                    <td class="n">{num(part.path_ms)}</td>
                    <td class="n">{num(part.faster_ms)}</td>
                    <td class="n"><b>{num(part.saves_ms)}</b></td>
                    <td class="n">{part.saves_p99_ms === null ? "\u2013" : num(part.saves_p99_ms)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      ))}
    </>
  );
}
