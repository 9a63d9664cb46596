// The answer of a verdict in the words of the terminal: FOUND, HEALTHY or UNDECIDED, and how confident it is.

import type { Finding, Verdict } from "./model.ts";

/** From this confidence (0-1) on a cause is likely. */
export const NAMED = 0.5;
const VERY_LIKELY = 0.7;
const CERTAIN = 0.9;

/** Whether a culprit is named. */
export const isNamed = (verdict: Verdict): boolean => verdict.verdict === "found";

/** The culprit, or the first root cause of an undecided verdict; none if the service is healthy. */
export function likeliest(verdict: Verdict): Finding | undefined {
  if (verdict.verdict === "healthy") return undefined;
  return verdict.findings.find((f) => f.cause === verdict.culprit) ?? verdict.findings.find((f) => f.role === "root");
}

/** The word of the answer, and its colour. A word that this page does not know is shown unchanged. */
export function answer(verdict: Verdict): { word: string; mood: "bad" | "good" | "unsure" } {
  if (isNamed(verdict)) return { word: "FOUND", mood: "bad" };
  if (verdict.verdict === "healthy") return { word: "HEALTHY", mood: "good" };
  return { word: String(verdict.verdict).toUpperCase(), mood: "unsure" };
}

/** `very likely (0.82)`; below a half only the number. */
export function confidence(ratio: number): string {
  const word = ratio >= CERTAIN ? "certain" : ratio >= VERY_LIKELY ? "very likely" : ratio >= NAMED ? "likely" : "confidence";
  return `${word} (${score(ratio)})`;
}

/** A confidence (0-1) with two digits. */
export const score = (ratio: number): string => (typeof ratio === "number" ? ratio.toFixed(2) : "–");
