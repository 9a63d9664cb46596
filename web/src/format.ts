// Numbers, durations and times as text. Three significant digits, because no measurement here carries more; units
// follow the number. It does not translate and does not know about locales: a report reads the same everywhere.

const THIN = "\u2009";
const NONE = "\u2013";

function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

/** Three significant digits; whole numbers keep all of theirs below a million. */
export function num(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  const sign = value < 0 ? "\u2212" : "";
  if (size === 0) return "0";
  if (size >= 1e15 || size < 1e-4) return value.toExponential(1).replace("-", "\u2212");
  for (const [scale, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"]] as const) {
    if (size >= scale) return `${sign}${trim((size / scale).toPrecision(3))}${THIN}${letter}`;
  }
  if (size >= 999.5) return sign + grouped(String(Math.round(size)));
  if (Number.isInteger(size)) return sign + String(size);
  return sign + trim(size < 1 ? size.toPrecision(2) : size.toPrecision(3));
}

function trim(digits: string): string {
  return digits.includes(".") && !digits.includes("e") ? digits.replace(/\.?0+$/, "") : digits;
}

const BYTES = /^(bytes?|By|B)(\/s)?$/;
/** Sizes are binary, rates decimal, as on the terminal. */
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const;
const RATES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]] as const;

/** The unit as a chart shows it: shares read as percent, bytes with a prefix. */
export function unitName(unit: string): string {
  if (unit === "ratio" || unit === "1") return "%";
  return unit;
}

/** A value without its unit's name, scaled to `unitName`. Bytes carry their prefix themselves. */
export function inUnit(value: number | null | undefined, unit: string): string {
  if (typeof value !== "number") return NONE;
  if (unit === "ratio" || unit === "1") return num(value * 100);
  if (BYTES.test(unit)) {
    for (const [scale, name] of unit.endsWith("/s") ? RATES : SIZES) {
      if (Math.abs(value) >= scale) return `${trim((value / scale).toPrecision(3))}${THIN}${name}`;
    }
  }
  return num(value);
}

/** A value with its unit, as in a table cell. */
export function withUnit(value: number | null | undefined, unit: string): string {
  if (typeof value !== "number") return NONE;
  const text = inUnit(value, unit);
  if (BYTES.test(unit)) return /B$/.test(text) ? text + (unit.endsWith("/s") ? "/s" : "") : `${text} ${unit}`;
  const name = unitName(unit);
  return name === "" ? text : `${text} ${name}`;
}

/** Milliseconds, as seconds from ten of them on. */
export function ms(value: number | null | undefined): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  return Math.abs(value) >= 10_000 ? `${num(value / 1000)} s` : `${num(value)} ms`;
}

export function percent(ratio: number | null | undefined): string {
  if (typeof ratio !== "number" || !Number.isFinite(ratio)) return NONE;
  const p = ratio * 100;
  return `${p > 0 && p < 10 ? trim(p.toPrecision(2)) : Math.round(p)}${THIN}%`;
}

/** Seconds since the start of the run; minutes and hours appear when the run (`span_s`) is long enough to need them. */
export function clock(seconds: number, span_s: number): string {
  if (span_s < 120) return `${trim(seconds.toFixed(span_s < 1 ? 3 : span_s < 10 ? 2 : 1))} s`;
  const whole = Math.round(Math.abs(seconds));
  const two = (n: number) => String(n).padStart(2, "0");
  const h = Math.floor(whole / 3600);
  const m = Math.floor(whole / 60) % 60;
  const sign = seconds < 0 ? "\u2212" : "";
  return sign + (h > 0 ? `${h}:${two(m)}:${two(whole % 60)}` : `${m}:${two(whole % 60)}`);
}

/** From one time of the run to another; as the charts' axis writes them where the run is long. */
export function stretch(from_s: number, to_s: number): string {
  return to_s < 600 ? `${num(from_s)} to ${num(to_s)} s` : `${clock(from_s, to_s)} to ${clock(to_s, to_s)}`;
}

export function duration(seconds: number): string {
  if (seconds < 120) return `${num(seconds)} s`;
  const m = Math.round(seconds / 60);
  return m < 120 ? `${m} min` : `${Math.floor(m / 60)} h ${m % 60} min`;
}

/** An RFC 3339 time as "2026-11-21 22:04:07 UTC"; anything else stays as it came. */
export function instant(text: string): string {
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(String(text));
  return found ? `${found[1]} ${found[2]} ${found[3] === "Z" ? "UTC" : found[3]}` : String(text);
}

/** A slug as words: "app_cpu" reads "app CPU". */
export function words(slug: string): string {
  return String(slug).replaceAll("_", " ").replace(/\bcpu\b/g, "CPU").replace(/\bio\b/g, "I/O");
}
