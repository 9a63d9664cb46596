// The result of a search for the knee: its sentences, the curve over the offered rate as a drawing, the steps as a table. The
// drawing is SVG, not a canvas, because its axis is not time, it has few points, and it prints.

import { ms, num, percent } from "../format.ts";
import type { Interval, LinePoint, Search, Step } from "../model.ts";

const WIDTH = 860;
const LEFT = 62;
const RIGHT = 16;
/** heights of the response time panel, and of the rate panel below it */
const PANELS = [{ top: 26, height: 210 }, { top: 268, height: 130 }] as const;
const HEIGHT = 436;

const HELD: Record<string, [string, string]> = {
  yes: ["yes", "good"],
  no: ["no", "bad"],
  unclear: ["unclear", "unsure"],
  generator_limited: ["holdup was the limit", "unsure"],
};

const HOW: Record<string, string> = { achieved_below_offered: "requests pile up", errors: "requests fail", objective: "objective missed" };

export function SearchPart({ search }: { search: Search }) {
  return (
    <>
      {search.refused && <p class="warn">No knee: something other than the service was the limit.</p>}
      <ul class="search-text">{search.text.map((text, i) => <li key={i}>{text}</li>)}</ul>
      {search.points.length > 0 && <Drawing search={search} />}
      {search.points.length > 0 && <Steps points={search.points} />}
    </>
  );
}

/** Overload and recovery begin in an earlier state, so they are not points of the curve. */
const isSteady = (p: Step): boolean => p.purpose !== "overload" && p.purpose !== "recover";

function Drawing({ search }: { search: Search }) {
  const points = search.points.filter((p) => isSteady(p) && p.offered > 0);
  if (points.length === 0) return null;
  const marks = [search.knee?.high, search.breaking_point?.rate.high].filter((v): v is number => typeof v === "number");
  const most = Math.max(...points.map((p) => p.offered), ...marks) * 1.04;
  const x = (rate: number) => LEFT + (Math.min(Math.max(rate, 0), most) / most) * (WIDTH - LEFT - RIGHT);
  const times = points.flatMap((p) => [p.mean_ms, p.p99_ms]).filter((v): v is number => typeof v === "number" && v > 0);
  const [low, high] = times.length > 0 ? [Math.min(...times) / 1.5, Math.max(...times) * 1.5] : [1, 10];
  const [upper, lower] = PANELS;
  const time = (v: number) => upper.top + upper.height * (1 - Math.log(Math.min(Math.max(v, low), high) / low) / Math.log(high / low));
  const rate = (v: number) => lower.top + lower.height * (1 - Math.min(Math.max(v, 0), most) / most);
  const rates = ticks(most, 8);
  const usl = search.usl?.determined ? search.usl.curve : [];
  return (
    <figure class="search-figure">
      <div class="scroll">
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={describe(search, points)}>
          {PANELS.map((panel, i) => (
            <g key={i}>
              {rates.map((v) => <line key={v} class="grid" x1={x(v)} x2={x(v)} y1={panel.top} y2={panel.top + panel.height} />)}
              {search.knee && <Band panel={panel} from={x(search.knee.low)} to={x(search.knee.high)} at={x(search.knee.value)} kind="knee" />}
              {search.breaking_point && <Band panel={panel} from={x(search.breaking_point.rate.low)} to={x(search.breaking_point.rate.high)} at={x(search.breaking_point.rate.value)} kind="breaks" />}
            </g>
          ))}
          {logTicks(low, high).map((v) => <Tick key={v} y={time(v)} text={num(v)} />)}
          {ticks(most, 4).map((v) => <Tick key={v} y={rate(v)} text={num(v)} />)}
          {rates.map((v) => <text key={v} class="axis-text" x={x(v)} y={lower.top + lower.height + 15} text-anchor="middle">{num(v)}</text>)}
          <text class="axis-text" x={LEFT} y={upper.top - 11}>response time, ms</text>
          <text class="axis-text" x={LEFT} y={lower.top - 11}>achieved, requests/s</text>
          <text class="axis-text" x={WIDTH - RIGHT} y={HEIGHT - 5} text-anchor="end">offered, requests/s</text>
          <Line points={search.curve} x={x} y={time} kind="fit" most={most} />
          <Line points={usl} x={x} y={time} kind="usl" most={most} />
          <line class="ideal" x1={x(0)} y1={rate(0)} x2={x(most)} y2={rate(most)} />
          {points.map((p, i) => (
            <g key={i} class={`step ${HELD[p.held]?.[1] ?? "unsure"}`}>
              <title>{tell(p)}</title>
              {typeof p.p99_ms === "number" && <circle class="p99" cx={x(p.offered)} cy={time(p.p99_ms)} r={3.5} />}
              {typeof p.mean_ms === "number" && <circle cx={x(p.offered)} cy={time(p.mean_ms)} r={3.5} />}
              <circle cx={x(p.offered)} cy={rate(p.achieved)} r={3.5} />
            </g>
          ))}
        </svg>
      </div>
      <figcaption class="soft small search-key">
        <span><svg class="key-dot" viewBox="0 0 10 10" aria-hidden="true"><g class="step good"><circle cx="5" cy="5" r="3.5" /></g></svg> mean, or rate: the service kept up</span>
        <span><svg class="key-dot" viewBox="0 0 10 10" aria-hidden="true"><g class="step bad"><circle cx="5" cy="5" r="3.5" /></g></svg> it did not</span>
        <span><svg class="key-dot" viewBox="0 0 10 10" aria-hidden="true"><g class="step unsure"><circle cx="5" cy="5" r="3.5" /></g></svg> unclear</span>
        <span><svg class="key-dot" viewBox="0 0 10 10" aria-hidden="true"><g class="step good"><circle class="p99" cx="5" cy="5" r="3.5" /></g></svg> 99th percentile</span>
        {search.knee && <span><i class="shade knee" /> knee, {span(search.knee)}</span>}
        {search.breaking_point && <span><i class="shade breaks" /> breaking point, {span(search.breaking_point.rate)}</span>}
        {search.curve.length > 1 && <span><i class="line fit" /> fitted curve</span>}
        {usl.length > 1 && <span><i class="line usl" /> Universal Scalability Law</span>}
      </figcaption>
    </figure>
  );
}

function Band({ panel, from, to, at, kind }: { panel: { top: number; height: number }; from: number; to: number; at: number; kind: string }) {
  return (
    <g class={kind}>
      <rect x={from} y={panel.top} width={Math.max(to - from, 1)} height={panel.height} />
      <line x1={at} x2={at} y1={panel.top} y2={panel.top + panel.height} />
    </g>
  );
}

function Tick({ y, text }: { y: number; text: string }) {
  return (
    <g>
      <line class="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y} y2={y} />
      <text class="axis-text" x={LEFT - 7} y={y + 4} text-anchor="end">{text}</text>
    </g>
  );
}

function Line({ points, x, y, kind, most }: { points: LinePoint[]; x(v: number): number; y(v: number): number; kind: string; most: number }) {
  const inside = points.filter((p) => p.rate <= most);
  if (inside.length < 2) return null;
  return <polyline class={`line ${kind}`} points={inside.map((p) => `${x(p.rate).toFixed(1)},${y(p.response_ms).toFixed(1)}`).join(" ")} />;
}

function Steps({ points }: { points: Step[] }) {
  return (
    <details class="search-steps">
      <summary>All {points.length} steps, in the order played</summary>
      <div class="scroll">
        <table>
          <thead><tr><th>Purpose</th><th class="n">From, s</th><th class="n">Offered /s</th><th class="n">Achieved /s</th><th class="n">Mean, ms</th><th class="n">p99, ms</th><th class="n">Failed</th><th class="n">In the service</th><th>Kept up</th></tr></thead>
          <tbody>
            {points.map((p, i) => {
              const [word, mood] = HELD[p.held] ?? [String(p.held), "unsure"];
              return (
                <tr key={i}>
                  <th scope="row">{p.purpose}</th>
                  <td class="n">{num(p.from_s)}</td><td class="n">{num(p.offered)}</td><td class="n">{num(p.achieved)}</td>
                  <td class="n">{num(p.mean_ms)}</td><td class="n">{num(p.p99_ms)}</td><td class="n">{percent(p.error_ratio)}</td><td class="n">{num(p.in_system)}</td>
                  <td><span class={`word ${mood}`}>{word}</span>{p.how && <span class="soft"> {HOW[p.how] ?? String(p.how)}</span>}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </details>
  );
}

const span = (i: Interval): string => `${num(i.value)}/s (${num(i.low)} to ${num(i.high)})`;

function tell(p: Step): string {
  const [word] = HELD[p.held] ?? [String(p.held)];
  return `${num(p.offered)}/s offered, ${num(p.achieved)}/s achieved, mean ${ms(p.mean_ms)}, p99 ${ms(p.p99_ms)}, ${percent(p.error_ratio)} failed; kept up: ${word}`;
}

function describe(search: Search, points: Step[]): string {
  const knee = search.knee ? `knee at ${span(search.knee)}` : "no knee";
  const breaks = search.breaking_point ? `, breaking point at ${span(search.breaking_point.rate)}` : "";
  return `Response time and achieved rate over the offered rate in ${points.length} steps: ${knee}${breaks}. The steps are in the table below.`;
}

/** Round values from 0 up, about the given number. */
export function ticks(most: number, about: number): number[] {
  const rough = most / about;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * ten).find((s) => s >= rough) ?? rough;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}

/** Powers of ten, or 1, 2 and 5 of each if few of them are in range. */
export function logTicks(low: number, high: number): number[] {
  const tens = Array.from({ length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1 }, (_, i) => 10 ** (Math.floor(Math.log10(low)) + i));
  const all = high / low > 1000 ? tens : tens.flatMap((t) => [t, 2 * t, 5 * t]);
  return all.filter((v) => v >= low && v <= high);
}
