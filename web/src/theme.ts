// Colours for canvases, read from the style sheet's custom properties, so that light, dark and print are decided in
// one place (report.css). The series colours are the Okabe-Ito set, shifted in lightness per theme: distinct under
// the common colour-vision deficiencies; from the eighth series on, dashes distinguish them as well.

export const SERIES_COLOURS = 7;

export interface Theme {
  series: string[];
  text: string;
  grid: string;
  band: string;
  mark: string;
  markEdge: string;
  /** colour of marks of an end or a failure */
  bad: string;
  /** colours by label of a slice */
  shades: Record<string, string>;
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(name).trim();
  return {
    series: Array.from({ length: SERIES_COLOURS }, (_, i) => get(`--s${i}`)),
    text: get("--soft"),
    grid: get("--grid"),
    band: get("--band"),
    mark: get("--mark"),
    markEdge: get("--mark-edge"),
    bad: get("--bad"),
    shades: {
      episode: get("--shade-episode"), episode_judged: get("--shade-judged"),
      warm_up: get("--shade-warm-up"), capped: get("--shade-capped"), generator_limited: get("--shade-limited"),
    },
  };
}

/** The custom property of the nth series, for HTML and SVG. */
export const seriesVar = (index: number): string => `var(--s${index % SERIES_COLOURS})`;

/** The colour of text that stands on the nth series' colour. */
export const onSeriesVar = (index: number): string => `var(--on${index % SERIES_COLOURS})`;

export const seriesDash = (index: number): number[] => (index < SERIES_COLOURS ? [] : index < 2 * SERIES_COLOURS ? [6, 3] : [2, 3]);

/** Calls back when colours may have changed: the system's scheme, or a print that starts or ends. */
export function onThemeChange(callback: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", callback);
  addEventListener("holdup:theme", callback);
  return () => {
    scheme.removeEventListener("change", callback);
    removeEventListener("holdup:theme", callback);
  };
}

/** Paper is white, so print always uses the light colours. */
export function printInLight(): void {
  const set = (on: boolean) => () => {
    document.documentElement.toggleAttribute("data-print", on);
    dispatchEvent(new Event("holdup:theme"));
  };
  addEventListener("beforeprint", set(true));
  addEventListener("afterprint", set(false));
}
