// The ledger: where the response time of each operation and percentile band went, as stacked bars and as a table. The
// unexplained residual is a part like any other, hatched and named.

import { useState } from "preact/hooks";
import { ms, num, percent, words } from "../format.ts";
import type { LedgerRow } from "../model.ts";
import { onSeriesVar, seriesVar } from "../theme.ts";

interface Piece {
  name: string;
  ms: number;
  error_ms: number | null;
  /** index of its colour, or null for the residual */
  colour: number | null;
}

/** The parts that took any time, in order. A part's index is its colour, so several runs can share one order. */
export function ledgerParts(rows: LedgerRow[]): string[] {
  return [...new Set(rows.flatMap((r) => r.parts.filter((p) => p.ms > 0).map((p) => p.part)))];
}

export function Ledger({ rows, order = ledgerParts(rows) }: { rows: LedgerRow[]; order?: string[] }) {
  const [scaled, setScaled] = useState(false);
  const [over, setOver] = useState<{ row: LedgerRow; piece: Piece } | null>(null);
  const operations = [...new Set(rows.map((r) => r.operation))];
  const longest = Math.max(...rows.map(total), Number.MIN_VALUE);

  return (
    <div class="ledger" onMouseLeave={() => setOver(null)}>
      <div class="ledger-head">
        <div class="ledger-key">
          {ledgerParts(rows).map((name) => <span key={name}><i style={{ background: seriesVar(order.indexOf(name)) }} />{words(name)}</span>)}
          <span><i class="hatch" />unexplained</span>
        </div>
        <div class="tools">
          <button type="button" aria-pressed={!scaled} onClick={() => setScaled(false)}>shares</button>
          <button type="button" aria-pressed={scaled} onClick={() => setScaled(true)}>one scale</button>
        </div>
      </div>
      {operations.map((operation) => {
        const bands = rows.filter((r) => r.operation === operation);
        return (
          <section key={operation} class="operation">
            <h3>{operation}</h3>
            {bands.map((row, i) => (
              <div key={i} class="bar-row">
                <span class="band">{bandName(row.band)}</span>
                <b class="n">{ms(row.response_ms)}</b>
                <div class="bar" role="img" aria-label={spoken(row, pieces(row, order))}>
                  <div class="bar-fill" style={{ width: scaled ? `${(total(row) / longest) * 100}%` : "100%" }}>
                    {pieces(row, order).map((piece, k) => {
                      const ratio = piece.ms / total(row);
                      return (
                        <span
                          key={k} class={piece.colour === null ? "piece hatch" : "piece"} title={said(piece, row)}
                          style={{ width: `${ratio * 100}%`, ...(piece.colour === null ? {} : { background: seriesVar(piece.colour), color: onSeriesVar(piece.colour) }) }}
                          onMouseEnter={() => setOver({ row, piece })}
                        >
                          <span class="piece-name">{words(piece.name)} <span class="n">{num(piece.ms)}</span></span>
                        </span>
                      );
                    })}
                  </div>
                </div>
              </div>
            ))}
            <details>
              <summary>As a table</summary>
              <LedgerTable rows={bands} />
            </details>
          </section>
        );
      })}
      <p class="ledger-over soft" aria-hidden="true">
        {over ? <><b>{over.row.operation}, {bandName(over.row.band)}:</b> {said(over.piece, over.row)}</> : "Point at a part for its value and error."}
      </p>
    </div>
  );
}

function LedgerTable({ rows }: { rows: LedgerRow[] }) {
  const names = [...new Set(rows.flatMap((r) => r.parts.map((p) => p.part)))];
  const cell = (row: LedgerRow, name: string) => {
    const part = row.parts.find((p) => p.part === name);
    return part ? <>{num(part.ms)}{part.error_ms > 0 && <span class="soft"> ± {num(part.error_ms)}</span>}</> : "–";
  };
  return (
    <div class="scroll">
      <table>
        <thead><tr><th>ms</th>{rows.map((r, i) => <th key={i} class="n">{bandName(r.band)}</th>)}</tr></thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}><th scope="row">{words(name)}</th>{rows.map((r, i) => <td key={i} class="n">{cell(r, name)}</td>)}</tr>
          ))}
          <tr><th scope="row">unexplained</th>{rows.map((r, i) => <td key={i} class="n">{num(r.residual_ms)}</td>)}</tr>
        </tbody>
        <tfoot><tr><th scope="row">response time</th>{rows.map((r, i) => <td key={i} class="n">{num(r.response_ms)}</td>)}</tr></tfoot>
      </table>
    </div>
  );
}

function pieces(row: LedgerRow, order: string[]): Piece[] {
  const all: Piece[] = row.parts.map((p) => ({ name: p.part, ms: p.ms, error_ms: p.error_ms, colour: order.indexOf(p.part) }));
  all.push({ name: "unexplained", ms: row.residual_ms, error_ms: null, colour: null });
  return all.filter((p) => p.ms > 0);
}

/** The bar's length: overlapping parts may sum to more than the response time. */
function total(row: LedgerRow): number {
  const sum = row.parts.reduce((all, p) => all + Math.max(0, p.ms), 0) + Math.max(0, row.residual_ms);
  return Math.max(sum, Number.MIN_VALUE);
}

function said(p: Piece, row: LedgerRow): string {
  const error = p.error_ms !== null && p.error_ms > 0 ? ` ± ${num(p.error_ms)}` : "";
  return `${words(p.name)} ${num(p.ms)}${error} ms, ${percent(p.ms / total(row))}`;
}

const spoken = (row: LedgerRow, all: Piece[]): string => `${bandName(row.band)}, ${ms(row.response_ms)}: ${all.map((p) => said(p, row)).join("; ")}`;

const bandName = (band: string): string => (band === "all" ? "all requests" : band === "p50" ? "median" : band);
