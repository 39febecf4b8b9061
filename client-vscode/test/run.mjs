// Runs the tests inside the extension host of a real VS Code (its server, in Chromium).
//
//     node test/run.mjs EDITOR [EXTENSION] [--run NAME]...
//
// EDITOR is the folder in which test/install.mjs put VS Code; EXTENSION an unpacked .vsix, else this folder is built and
// tested. --run runs those of test/runs.mjs that are named, else all. A line for each test:
// `RUN: ok NAME (N ms)`, `RUN: skipped NAME: reason` or `RUN: FAILED NAME: what and where`.
import { execFileSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runInHost } from "./host.mjs";
import { RUNS } from "./runs.mjs";
import { startVscode } from "./vscode.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const { positionals, values } = parseArgs({ allowPositionals: true, options: { run: { type: "string", multiple: true } } });
const [editor = "", extension = dirname(here)] = positionals.map((path) => resolve(path));
const asked = RUNS.filter((each) => values.run === undefined || values.run.includes(each.name));
const MOST_MILLISECONDS = 600_000;

if (extension === dirname(here)) {
  execFileSync(process.execPath, ["esbuild.mjs"], { cwd: extension, stdio: "inherit" });
}
let failed = asked.length === 0;
for (const trust of [false, true]) {
  const runs = asked.filter((each) => (each.trust ?? false) === trust);
  if (runs.length === 0) {
    continue;
  }
  const vscode = await startVscode(editor, { files: join(here, "workspace"), trust, others: join(here, "extensions") });
  try {
    for (const each of runs) {
      failed = !(await passes(vscode, each)) || failed;
    }
  } catch (error) {
    failed = true;
    console.log(String(error), vscode.said().slice(-2000));
  } finally {
    await vscode.stop();
  }
}
process.exit(failed ? 1 : 0);

/** Run the tests of one run in a window of their own. */
async function passes(vscode, { name, settings, prepare }) {
  const say = (line) => console.log(`${name}: ${line}`);
  const workspace = await vscode.copied(name, join(here, "workspace"), settings);
  await prepare?.(workspace);
  const files = (await readdir(join(here, "host", name))).filter((file) => file.endsWith(".ts")).sort();
  const { end, picture } = await runInHost(vscode, {
    name,
    source: [...files.map((file) => `import "./host/${name}/${file}";`), 'export { run } from "./host/support";'].join("\n"),
    extension,
    workspace,
    heard: (line) => /^(ok|skipped|FAILED) /.test(line) && say(line),
    milliseconds: MOST_MILLISECONDS,
  });
  if (end === "late") {
    say(`FAILED the run: no end in ${MOST_MILLISECONDS / 1000} s; a picture of the window is ${picture}`);
  }
  return end === "passed";
}
