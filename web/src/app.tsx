// The whole page in reading order: the verdict of each run, then its evidence. It holds the two pieces of state that the
// parts share: the run that is shown, and the marked window of a chart.

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { TimeAxis } from "./axis.ts";
import { NAMED, answer, confidence, isNamed, likeliest, score } from "./answer.ts";
import { duration, instant, words } from "./format.ts";
import { chartElement, fromHash, toHash } from "./link.ts";
import type { Report, Run, Slice } from "./model.ts";
import { Charts } from "./parts/charts.tsx";
import { FindingNote } from "./parts/finding.tsx";
import { LoadAverage, Notes } from "./parts/kernel.tsx";
import { Gains } from "./parts/gains.tsx";
import { Ledger, ledgerParts } from "./parts/ledger.tsx";
import { bringIntoView, Overview } from "./parts/overview.tsx";
import { ObjectivesTable } from "./parts/objectives.tsx";
import { Chain, DebtPart, Slow } from "./parts/outline.tsx";
import { SearchPart } from "./parts/search.tsx";
import { ServicesTable } from "./parts/services.tsx";
import { ClearedList, ComparisonTable, CoverageTable, DearList, LoadTable, NotJudgedList } from "./parts/tables.tsx";

export function App({ report }: { report: Report }) {
  const { runs } = report;
  const [name, setName] = useState(() => known(runs, fromHash(globalThis.location?.hash ?? "")?.run) ?? runs[0]?.name);
  const run = runs.find((r) => r.name === name);
  const axis = useMemo(() => new TimeAxis(run ? extent(run) : { from: 0, to: 1 }), [run]);
  const [wanted, setWanted] = useState(() => globalThis.location?.hash ?? "");
  const [asked, setAsked] = useState(0);

  const follow = useCallback((hash: string) => {
    const place = fromHash(hash);
    const target = known(runs, place?.run);
    if (target === undefined) return;
    setName(target);
    setWanted(hash);
    setAsked((n) => n + 1);
  }, [runs]);

  useEffect(() => {
    const moved = () => follow(location.hash);
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, [follow]);

  // After the run's charts exist: mark the window and bring its chart into view.
  useEffect(() => {
    const place = fromHash(wanted);
    if (!place?.chart || place.run !== name) return;
    axis.mark({ chart: place.chart, window: place.window });
    const figure = document.getElementById(chartElement(place.chart));
    figure?.scrollIntoView({ block: "center", behavior: asked === 0 || reducesMotion() ? "auto" : "smooth" });
    figure?.focus({ preventScroll: true });
  }, [wanted, asked, axis, name]);

  if (!run) return <main class="page"><h1>This report holds no run.</h1></main>;
  return (
    <main class="page">
      <Head report={report} run={run} choose={(n) => follow(toHash({ run: n, chart: null, window: null }))} />
      <Body key={run.name} report={report} run={run} axis={axis} follow={follow} />
      <footer class="soft small">
        Written by holdup {report.holdup}. This file fetches nothing; all of its data comes from the recording.
      </footer>
    </main>
  );
}

function Head({ report, run, choose }: { report: Report; run: Run; choose(name: string): void }) {
  const { runs } = report;
  const several = runs.length > 1;
  const move = (e: KeyboardEvent) => {
    const by = e.key === "ArrowRight" || e.key === "ArrowDown" ? 1 : e.key === "ArrowLeft" || e.key === "ArrowUp" ? -1 : 0;
    if (by === 0) return;
    e.preventDefault();
    const next = runs[(runs.indexOf(run) + by + runs.length) % runs.length];
    if (!next) return;
    choose(next.name);
    document.getElementById(`tab:${next.name}`)?.focus();
  };
  return (
    <header class="head">
      <h1 class="kicker"><b>holdup</b><span>{report.title}</span></h1>
      {several ? (
        <div class="verdicts" role="tablist" aria-label="Runs" onKeyDown={move}>
          {runs.map((r) => (
            <button
              key={r.name} type="button" role="tab" id={`tab:${r.name}`} class="verdict" aria-selected={r === run} aria-controls="run"
              tabIndex={r === run ? 0 : -1} onClick={() => choose(r.name)}
            >
              <Headline run={r} />
            </button>
          ))}
        </div>
      ) : (
        <div class="verdicts"><div class="verdict only"><Headline run={run} /></div></div>
      )}
    </header>
  );
}

function Headline({ run }: { run: Run }) {
  const v = run.verdict;
  const { word, mood } = answer(v);
  const first = likeliest(v);
  return (
    <>
      <span class="verdict-top">
        <b>{run.name}</b>
        <span class={`word ${mood}`}>{word}</span>
        {first && isNamed(v) && <span class="soft">{confidence(first.confidence)}</span>}
      </span>
      {first && !isNamed(v) && (
        <span class="likeliest">likeliest: <b>{first.title || words(first.cause)}</b> <code>{first.cause}</code>{first.confidence < NAMED && <span class="soft"> ({score(first.confidence)})</span>}</span>
      )}
      <span class="headline">{v.headline || (v.culprit ? words(v.culprit) : word)}</span>
      <span class="soft small verdict-foot">{instant(run.started_at)} · {duration(run.duration_s)}</span>
    </>
  );
}

function Body({ report, run, axis, follow }: { report: Report; run: Run; axis: TimeAxis; follow(hash: string): void }) {
  const v = run.verdict;
  const charts = useMemo(() => new Set(run.charts.map((c) => c.id)), [run]);
  const shaded = useMemo(() => shades(run), [run]);
  const order = useMemo(() => ledgerParts(report.runs.flatMap((r) => r.verdict.ledger)), [report]);
  const others = report.runs.filter((r) => r !== run);
  const link = { run: run.name, charts, follow };
  const several = report.runs.length > 1;
  const { plans } = run;
  return (
    <div id="run" {...(several ? { role: "tabpanel", "aria-labelledby": `tab:${run.name}` } : {})}>
      {v.search && <Section id="search" title="What the search found" note="response time over the offered rate"><SearchPart search={v.search} /></Section>}
      {(v.symptom || v.episodes.length > 0) && (
        <Section id="wrong" title="Symptom and episodes" note={v.episodes.length > 1 ? `${v.episodes.length} episodes` : ""}><Slow verdict={v} {...link} /></Section>
      )}
      {run.overview.length > 0 && (
        <Section id="overview" title="The run in one picture" note="each lane reaches from zero to its maximum or limit" wide><Overview run={run} open={bringIntoView} /></Section>
      )}
      {v.findings.length > 0 && (
        <Section id="findings" title={isNamed(v) || v.verdict === "healthy" ? "Findings" : "Likeliest causes"} note={several ? run.name : ""}>
          <Chain links={v.chain} findings={v.findings} />
          {v.findings.map((f, i) => <FindingNote key={i} finding={f} plans={plans} {...link} />)}
        </Section>
      )}
      {v.debt && <Section id="debt" title="Old work is not finished" note="measure a fix after that"><DebtPart debt={v.debt} /></Section>}
      {v.dear.length > 0 && <Section id="dear" title="Dear at this level" note="work that an answer does not need"><DearList all={v.dear} /></Section>}
      {v.next && <Section id="next" title="Will bind next" note="once the rest is fixed"><FindingNote finding={v.next} plans={plans} {...link} /></Section>}
      {v.host_load && <Section id="host-load" title="The load average" note="its threads, by state"><LoadAverage load={v.host_load} /></Section>}
      {report.comparison && (
        <Section id="comparison" title="Side by side" note="the first is the baseline"><ComparisonTable comparison={report.comparison} /></Section>
      )}
      {v.ledger.length > 0 && (
        <Section id="ledger" title="Where the time went" note="response time, from when a request was due"><Ledger rows={v.ledger} order={order} /></Section>
      )}
      {v.services.length > 0 && (
        <Section id="services" title="Services" note="a mean request, by traces; before is the baseline window"><ServicesTable rows={v.services} /></Section>
      )}
      {v.critical_path.length > 0 && (
        <Section id="gains" title="What a fix gives back" note="traced requests, each part at half its time"><Gains paths={v.critical_path} /></Section>
      )}
      {v.load.operations.length > 0 && <Section id="load" title="What the client saw" note=""><LoadTable load={v.load} /></Section>}
      {v.objectives.length > 0 && (
        <Section id="objectives" title="Objectives" note=""><ObjectivesTable objectives={v.objectives} aborted={v.load.aborted ?? null} /></Section>
      )}
      {run.charts.length > 0 && (
        <Section id="charts" title="The run over time" note={several ? run.name : ""} wide><Charts charts={run.charts} marks={run.marks} phases={run.phases} shades={shaded} axis={axis} others={others} /></Section>
      )}
      {v.cleared.length > 0 && (
        <Section id="cleared" title="Cleared" note={`${v.cleared.length}, each by evidence`}><ClearedList cleared={v.cleared} {...link} /></Section>
      )}
      {v.not_judged.length > 0 && (
        <Section id="not-judged" title="Not checked" note="this run lacks their data"><NotJudgedList items={v.not_judged} /></Section>
      )}
      {v.notes.length > 0 && (
        <Section id="notes" title="Settings that differ from the vendors’ advice" note={`${v.notes.length}; only load shows whether they matter`}><Notes notes={v.notes} /></Section>
      )}
      {v.coverage.length > 0 && <Section id="coverage" title="Sources" note=""><CoverageTable coverage={v.coverage} /></Section>}
    </div>
  );
}

function Section({ id, title, note, wide, children }: { id: string; title: string; note: string; wide?: boolean; children: ComponentChildren }) {
  return (
    <section class={wide ? "part wide" : "part"} aria-labelledby={`h:${id}`}>
      <div class="part-head"><h2 id={`h:${id}`}>{title}</h2>{note && <p class="soft small">{note}</p>}</div>
      <div class="part-body">{children}</div>
    </section>
  );
}

const known = (runs: Run[], name: string | undefined): string | undefined => runs.find((r) => r.name === name)?.name;

const reducesMotion = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Windows that the charts shade: episodes, the warm-up, and seconds in which the generator was a limit. */
export function shades(run: Run): Slice[] {
  const { episode, episodes } = run.verdict;
  const slow = episodes.map((e): Slice => ({ from_s: e.from_s, to_s: e.to_s, label: e.judged ? "episode_judged" : "episode" }));
  const one: Slice[] = slow.length === 0 && episode ? [{ ...episode, label: "episode_judged" }] : [];
  const { validity, warm_up } = run.verdict.load;
  const wrong = validity.slices.filter((s) => s.label === "capped" || s.label === "generator_limited");
  const start = run.phases[0]?.from_s ?? 0;
  const warm: Slice[] = warm_up.seconds > 0 ? [{ from_s: start, to_s: start + warm_up.seconds, label: "warm_up" }] : [];
  return [...slow, ...one, ...warm, ...wrong];
}

/** From the run's start to its end, or further if a chart has later samples. */
function extent(run: Run): { from: number; to: number } {
  let from = 0;
  let to = run.duration_s;
  for (const chart of run.charts) for (const s of chart.series) for (const t of s.x_s) {
    if (t < from) from = t;
    if (t > to) to = t;
  }
  return { from, to };
}
