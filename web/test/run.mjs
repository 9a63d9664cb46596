// Runs the tests: bundles each into .tmp (Node 20 reads no TypeScript) and hands them to node's own runner.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", ".tmp");
rmSync(out, { recursive: true, force: true });
const tests = readdirSync(here).filter((name) => /\.test\.tsx?$/.test(name));
await build({
  absWorkingDir: join(here, ".."),
  entryPoints: tests.map((name) => join("test", name)),
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  format: "esm",
  platform: "node",
  packages: "external",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
const files = readdirSync(out).filter((name) => name.endsWith(".test.mjs")).map((name) => join(out, name));
process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
