// What stands around the findings: the load average explained, and what is set against the vendors' advice. A note is no
// finding: it says itself whether anything that was measured shows that it matters.

import { num, percent } from "../format.ts";
import type { HostLoad, HostLoadPart, Note } from "../model.ts";
import { FixItem } from "./finding.tsx";

const STATES: Record<string, string> = { R: "running or runnable", D: "uninterruptible sleep" };

export function LoadAverage({ load }: { load: HostLoad }) {
  return (
    <>
      <p>{load.text}</p>
      <div class="scroll">
        <table class="host-load">
          <thead><tr><th class="n">1 minute</th><th class="n">5</th><th class="n">15</th><th class="n">most</th><th class="n">replayed</th><th class="n">CPUs</th>
            <th class="n">runnable</th><th class="n">uninterruptible</th><th class="n">idle</th><th class="n">waits for I/O</th></tr></thead>
          <tbody><tr>
            {[...load.load_average, load.load_1m_max, load.reconstructed_1m, load.cpus, load.runnable, load.uninterruptible].map((v, i) => <td key={i} class="n">{num(v)}</td>)}
            <td class="n">{percent(load.idle_ratio)}</td><td class="n">{percent(load.iowait_ratio)}</td>
          </tr></tbody>
        </table>
      </div>
      {load.parts.length > 0 && (
        <ul class="load-parts">{load.parts.map((p, i) => <li key={i}><Part part={p} /></li>)}</ul>
      )}
      <p class="soft small">Replayed: the 1-minute figure as the sampled threads make it, by the kernel’s own formula.</p>
    </>
  );
}

function Part({ part: p }: { part: HostLoadPart }) {
  return <><b class="n">{num(p.threads)}</b> {p.process}, {STATES[p.state] ?? String(p.state)}{p.wchan && <> in <code>{p.wchan}</code></>}</>;
}

/** All of them; the Rust side puts those that matter first. */
export function Notes({ notes }: { notes: Note[] }) {
  return (
    <dl class="suspects notes">
      {notes.map((n, i) => (
        <div key={i}>
          <dt>{n.check} <span class="soft small">{n.subject}</span></dt>
          <dd>
            <p>{n.observed}; {n.vendor} advises {n.advised}. {n.finding && <span class="word bad">matters here: {n.finding}</span>}</p>
            <p>{n.text}</p>
            {n.fix && <ul class="single"><FixItem fix={n.fix} /></ul>}
            <p class="soft small">{n.reference}</p>
          </dd>
        </div>
      ))}
    </dl>
  );
}
