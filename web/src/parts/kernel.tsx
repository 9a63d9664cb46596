// The parts around the findings: the load average, and settings that differ from the vendors' advice. A note is not a
// finding: it says whether a measurement shows that it matters.

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
          <thead><tr><th class="n">1 minute</th><th class="n">5</th><th class="n">15</th><th class="n">max</th><th class="n">recomputed</th><th class="n">CPUs</th>
            <th class="n">runnable</th><th class="n">uninterruptible</th><th class="n">idle</th><th class="n">I/O wait</th></tr></thead>
          <tbody><tr>
            {[...load.load_average, load.load_1m_max, load.reconstructed_1m, load.cpus, load.runnable, load.uninterruptible].map((v, i) => <td key={i} class="n">{num(v)}</td>)}
            <td class="n">{percent(load.idle_ratio)}</td><td class="n">{percent(load.iowait_ratio)}</td>
          </tr></tbody>
        </table>
      </div>
      {load.parts.length > 0 && (
        <ul class="load-parts">{load.parts.map((p, i) => <li key={i}><Part part={p} /></li>)}</ul>
      )}
      <p class="soft small">Recomputed: the 1-minute figure from the sampled threads, by the kernel’s formula.</p>
    </>
  );
}

function Part({ part: p }: { part: HostLoadPart }) {
  return <><b class="n">{num(p.threads)}</b> {p.process}, {STATES[p.state] ?? String(p.state)}{p.wchan && <> in <code>{p.wchan}</code></>}</>;
}

/** All notes; the Rust side sorts those that matter first. */
export function Notes({ notes }: { notes: Note[] }) {
  return (
    <dl class="suspects notes">
      {notes.map((n, i) => (
        <div key={i}>
          <dt>{n.check} <span class="soft small">{n.subject}</span></dt>
          <dd>
            <p>{n.observed}; {n.vendor} advises {n.advised}. {n.finding && <span class="word bad">It matters here: {n.finding}.</span>}</p>
            <p>{n.text}</p>
            {n.fix && <ul class="single"><FixItem fix={n.fix} /></ul>}
            <p class="soft small">{n.reference}</p>
          </dd>
        </div>
      ))}
    </dl>
  );
}
