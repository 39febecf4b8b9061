// Runs the tests of what needs no editor, test/unit/*.test.ts, in Node's own runner: node test/unit.mjs
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const unit = join(dirname(fileURLToPath(import.meta.url)), "unit");
const folder = mkdtempSync(join(tmpdir(), "warpwright-unit-"));
try {
  const tests = readdirSync(unit).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: tests.map((name) => join(unit, name)),
    outdir: folder,
    bundle: true,
    platform: "node",
    format: "cjs",
    external: ["vscode"],
    logLevel: "warning",
  });
  const bundled = tests.map((name) => join(folder, name.replace(/\.ts$/, ".js")));
  process.exitCode = spawnSync(process.execPath, ["--test", ...bundled], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
