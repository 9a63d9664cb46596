// The services of traced requests: own time, calls and failures, now and before. Those that lost most time come first.

import { num, percent } from "../format.ts";
import type { Service } from "../model.ts";

export function ServicesTable({ rows }: { rows: Service[] }) {
  const longest = Math.max(...rows.flatMap((row) => [row.own_ms, row.own_before_ms ?? 0]), Number.MIN_VALUE);
  return (
    <div class="scroll">
      <table class="services">
        <thead>
          <tr>
            <th>Service</th><th class="n">Own time, ms</th><th class="n">before</th><th aria-hidden="true" />
            <th class="n">of it in stores</th><th class="n">on the way</th>
            <th class="n">Calls a request</th><th class="n">before</th><th class="n">Failures</th><th class="n">before</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              <th scope="row">{row.service}</th>
              <td class="n">{num(row.own_ms)}</td><td class="n">{num(row.own_before_ms)}</td>
              <td aria-hidden="true">
                <div class="own"><i style={{ width: `${(row.own_ms / longest) * 100}%` }} /><i class="before" style={{ width: `${((row.own_before_ms ?? 0) / longest) * 100}%` }} /></div>
              </td>
              <td class="n">{num(row.stores_ms)}</td><td class="n">{num(row.way_ms)}</td>
              <td class="n">{num(row.calls)}</td><td class="n">{num(row.calls_before)}</td>
              <td class="n">{percent(row.errors)}</td><td class="n">{percent(row.errors_before)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
