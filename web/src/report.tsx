// Entry of the self-contained report: reads the data the Rust binary put into the page and renders it. An
// unreadable report says so in the page, because the reader may not have a console open.

import "uplot/dist/uPlot.min.css";
import "./report.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { readReport } from "./read.ts";
import { printInLight } from "./theme.ts";

const root = document.getElementById("app");
const data = document.getElementById("holdup-report");

if (root) {
  try {
    const report = readReport(data?.textContent ?? "");
    document.title = `${report.title} · holdup`;
    printInLight();
    render(<App report={report} />, root);
  } catch (error) {
    root.textContent = `This report cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  }
}
