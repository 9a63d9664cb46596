// A finding as a colleague would note it: the cause, its confidence, the delay it accounts for, its evidence, the fixes, and
// how to prove that they helped.

import { useState } from "preact/hooks";
import { confidence } from "../answer.ts";
import { ms, percent, words } from "../format.ts";
import { findingElement } from "../link.ts";
import type { Finding, Fix, Plan } from "../model.ts";
import { EvidenceList, type EvidenceProps } from "./evidence.tsx";
import { Plans } from "./plans.tsx";

export const ROLES: Record<string, string> = { root: "Root cause", contributor: "Contributor", symptom: "Symptom", next: "Will bind next" };

type Props = Omit<EvidenceProps, "evidence"> & { finding: Finding; plans: Plan[] };

export function FindingNote({ finding: f, plans, ...rest }: Props) {
  return (
    <article class={ROLES[f.role] ? `finding ${f.role}` : "finding"} id={findingElement(f.cause)}>
      <header>
        <span class="role">{ROLES[f.role] ?? String(f.role)}</span>
        <h3>{f.title || words(f.cause)}</h3>
        <code class="slug">{f.cause}</code>
        {f.follows_from && <span class="soft small">follows from <code>{f.follows_from}</code></span>}
        {f.adds_to && <span class="soft small">adds to <code>{f.adds_to}</code></span>}
      </header>
      <p class="weight">
        <span>{confidence(f.confidence)}</span>
        <Explained finding={f} />
      </p>
      <EvidenceList evidence={f.evidence} {...rest} />
      <Plans finding={f} plans={plans} />
      {f.fixes.length > 0 && (
        <div class="fixes">
          <h4>What to do{f.fixes.length > 1 && <span class="soft small"> (safest first)</span>}</h4>
          <ol class={f.fixes.length > 1 ? "" : "single"}>{f.fixes.map((fix, i) => <FixItem key={i} fix={fix} />)}</ol>
        </div>
      )}
      {f.prove && <div class="prove"><h4>How to prove it</h4><p>{f.prove}</p></div>}
    </article>
  );
}

function Explained({ finding: f }: { finding: Finding }) {
  const { explains_ms, explains_ratio: ratio } = f;
  if (f.share) return <span>accounts for <b class="n">{percent(f.share.ratio)}</b> {f.share.of}</span>;
  if (typeof explains_ms !== "number") return null;
  const known = typeof ratio === "number" && ratio > 0;
  // A refused request has no wait, so here the share counts failed requests.
  if (known && explains_ms === 0) return <span>accounts for <b class="n">{percent(ratio)}</b> of the failed requests</span>;
  return (
    <>
      {known && <span class="meter" aria-hidden="true"><i style={{ width: `${Math.min(100, ratio * 100)}%` }} /></span>}
      <span>
        accounts for <b class="n">{ms(explains_ms)}</b>
        {known && <> of <b class="n">{ms(explains_ms / ratio)}</b> ({percent(ratio)})</>}
      </span>
    </>
  );
}

export function FixItem({ fix }: { fix: Fix }) {
  return (
    <li>
      <p>{fix.text}</p>
      {fix.command && <Command text={fix.command} />}
      {fix.keep && <p class="risk"><b>Keep:</b> {fix.keep}</p>}
      {fix.risk && <p class="risk"><b>Risk:</b> {fix.risk}</p>}
    </li>
  );
}

/** A command to run, with a button that copies it. */
export function Command({ text }: { text: string }) {
  const [done, setDone] = useState<"" | "copied" | "select it by hand">("");
  const click = async () => {
    setDone((await copy(String(text))) ? "copied" : "select it by hand");
    setTimeout(() => setDone(""), 1600);
  };
  return (
    <div class="command">
      <pre tabIndex={0}>{text}</pre>
      <button type="button" onClick={click} aria-label="Copy the command">{done || "copy"}</button>
      <span class="unseen" role="status">{done}</span>
    </div>
  );
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages from plain http and old browsers have no clipboard interface, but a selection works there.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
