// Bundles the report into dist/report.js and dist/report.css, which are committed so that a clone builds with
// Rust alone. With --check nothing is written: it fails when dist is not what the sources give. It does not
// type-check (`npm run types`).
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, "dist");

/** Both libraries are MIT: their whole notice travels with every report file. */
function licence(name) {
  const version = JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8")).version;
  const text = readFileSync(join(root, "node_modules", name, "LICENSE"), "utf8").trim().replaceAll("\r\n", "\n");
  return `/*! ${name} ${version}\n${text}\n*/`;
}

const result = await build({
  absWorkingDir: root,
  entryPoints: { report: "src/report.tsx" },
  outdir: "dist",
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: ["es2021"],
  charset: "ascii",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "inline",
  banner: { js: `${licence("preact")}\n${licence("uplot")}`, css: licence("uplot") },
  logLevel: "warning",
});

const checking = process.argv.includes("--check");
let stale = 0;
if (!checking) mkdirSync(dist, { recursive: true });
for (const file of result.outputFiles) {
  const name = file.path.slice(dist.length + 1);
  // The page holds both files inline, so neither may end its own element.
  if (/<\/(script|style)|<!--/i.test(file.text)) throw new Error(`dist/${name} would end its element in the page`);
  const path = join(dist, name);
  if (!checking) {
    writeFileSync(path, file.contents);
    console.log(`dist/${name}  ${file.contents.length} bytes`);
  } else if (!existsSync(path) || !readFileSync(path).equals(Buffer.from(file.contents))) {
    console.error(`dist/${name} is not what the sources give: run "npm run build" and commit it`);
    stale += 1;
  } else {
    console.log(`dist/${name}  ${file.contents.length} bytes, as built`);
  }
}
process.exitCode = stale > 0 ? 1 : 0;
