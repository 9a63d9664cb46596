// The shared time axis itself: the phases by name, ticks, the cursor's time, the marked window, and a button
// to leave the zoom. It stays in view while the charts scroll.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { TimeAxis } from "../axis.ts";
import { clock, num } from "../format.ts";
import type { Phase } from "../model.ts";
import { GUTTER_LEFT, GUTTER_RIGHT, tickCount } from "./plot.ts";

interface RulerProps {
  axis: TimeAxis;
  phases: Phase[];
  /** width of the plots, in CSS pixels */
  width: number;
  /** further buttons */
  children?: ComponentChildren;
}

export function Ruler({ axis, phases, width, children }: RulerProps) {
  const [, again] = useState(0);
  useEffect(() => axis.subscribe(() => again((n) => n + 1)), [axis]);

  const { from, to } = axis.range;
  const span = to - from;
  const whole = axis.full.to - axis.full.from;
  const at = (t: number) => `${((Math.min(to, Math.max(from, t)) - from) / span) * 100}%`;
  const wide = (a: number, b: number) => `${((Math.min(to, b) - Math.max(from, a)) / span) * 100}%`;
  const inView = phases.map((p, i) => ({ p, i })).filter(({ p }) => p.to_s > from && p.from_s < to);
  const mark = axis.highlight?.window;

  return (
    <div class="ruler">
      <div class="ruler-bar">
        <span class="soft">
          {axis.cursor === null ? "Legends show the highest value in view." : <>At <b class="n">{clock(axis.cursor, Math.min(whole, span))}</b></>}
        </span>
        <span class="soft hint">Drag to zoom, double-click for all; keys: ← → + − 0</span>
        {children}
        {mark && <button type="button" onClick={() => axis.mark(null)}>Clear the mark</button>}
        <button type="button" disabled={!axis.zoomed} onClick={() => axis.reset()}>Whole run</button>
      </div>
      <div class="ruler-scale" style={{ marginLeft: `${GUTTER_LEFT}px`, marginRight: `${GUTTER_RIGHT}px` }} aria-hidden="true">
        {inView.map(({ p, i }) => (
          <div key={i} class={i % 2 ? "phase odd" : "phase"} style={{ left: at(p.from_s), width: wide(p.from_s, p.to_s) }} title={phaseText(p)}>
            {p.name} <span class="soft">{rateText(p)}</span>
          </div>
        ))}
        {axis.ticks(tickCount(width)).map((t) => (
          <span key={t} class="tick n" style={{ left: at(t) }}>{clock(t, span)}</span>
        ))}
        {mark && <i class="ruler-mark" style={{ left: at(mark.from_s), width: wide(mark.from_s, mark.to_s) }} />}
        {axis.cursor !== null && <i class="ruler-cursor" style={{ left: at(axis.cursor) }} />}
      </div>
    </div>
  );
}

function rateText(p: Phase): string {
  if (typeof p.rate_from !== "number" && typeof p.rate_to !== "number") return "";
  const same = p.rate_from === p.rate_to || typeof p.rate_from !== "number" || typeof p.rate_to !== "number";
  const text = same ? `${num(p.rate_to ?? p.rate_from)}/s` : `${num(p.rate_from)}\u2009\u2192\u2009${num(p.rate_to)}/s`;
  // holdup names a phase by its rate unless the scenario names it.
  return p.name.includes("/s") ? "" : text;
}

const phaseText = (p: Phase): string => `${p.name}: ${num(p.from_s)}\u2013${num(p.to_s)} s ${rateText(p)}`;
