// Wraps a model into the page the Rust binary writes: node test/page.mjs [model.json] > page.html
import { readFileSync } from "node:fs";

const here = (path) => new URL(path, import.meta.url);
const model = readFileSync(process.argv[2] ?? here("sample.json"), "utf8");
const css = readFileSync(here("../dist/report.css"), "utf8");
const js = readFileSync(here("../dist/report.js"), "utf8");
// "<" only ever stands inside JSON strings, so this is the same JSON, and it can't end its element.
const safe = JSON.stringify(JSON.parse(model)).replaceAll("<", "\\u003c");

process.stdout.write(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>holdup</title><style>${css}</style></head>
<body><div id="app"></div><script type="application/json" id="holdup-report">${safe}</script><script>${js}</script></body></html>
`);
