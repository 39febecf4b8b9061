// Runs the tests inside the extension host of a real VS Code (its server, in Chromium).
//
//     node test/run.mjs EDITOR [EXTENSION] [--run NAME]...
//
// EDITOR is the folder in which test/install.mjs put VS Code; EXTENSION an unpacked .vsix, else this folder is built and
// tested. --run runs those of test/runs.mjs that are named, else all. A line for each test:
// `RUN: ok NAME (N ms)`, `RUN: skipped NAME: reason` or `RUN: FAILED NAME: what and where`.
import { execFileSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { RUNS } from "./runs.mjs";
import { startVscode } from "./vscode.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const { positionals, values } = parseArgs({ allowPositionals: true, options: { run: { type: "string", multiple: true } } });
const [editor = "", extension = dirname(here)] = positionals.map((path) => resolve(path));
const asked = RUNS.filter((each) => values.run === undefined || values.run.includes(each.name));
const MOST_MILLISECONDS = 240_000;

if (extension === dirname(here)) {
  execFileSync(process.execPath, ["esbuild.mjs"], { cwd: extension, stdio: "inherit" });
}
let failed = asked.length === 0;
for (const trust of [false, true]) {
  const runs = asked.filter((each) => (each.trust ?? false) === trust);
  if (runs.length === 0) {
    continue;
  }
  const vscode = await startVscode(editor, { files: join(here, "workspace"), trust });
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
  const tests = await bundled(name, join(vscode.folder, "tests", `${name}.js`));
  const page = await vscode.browser.newPage({ viewport: { width: 1280, height: 800 } });
  let ended;
  const exit = new Promise((resolve) => (ended = resolve));
  await page.exposeFunction("codeAutomationLog", (_kind, values) => {
    const line = values.join(" ");
    if (/^(ok|skipped|FAILED) /.test(line)) {
      say(line);
    }
  });
  await page.exposeFunction("codeAutomationExit", (status) => ended(status));
  await page.goto(vscode.address([
    ["extensionDevelopmentPath", vscode.remote(extension)],
    ["extensionTestsPath", vscode.remote(tests)],
  ], workspace));
  const late = new Promise((resolve) => setTimeout(resolve, MOST_MILLISECONDS, "late"));
  const status = await Promise.race([exit, late]);
  if (status === "late") {
    const picture = join(tmpdir(), `warpwright-vscode-${name}.png`);
    await page.screenshot({ path: picture });
    say(`FAILED the run: no end in ${MOST_MILLISECONDS / 1000} s; a picture of the window is ${picture}`);
  }
  await page.close();
  return status === 0;
}

/** One module with all tests of a run, which exports `run`. */
async function bundled(name, outfile) {
  const files = (await readdir(join(here, "host", name))).filter((file) => file.endsWith(".ts")).sort();
  const contents = [...files.map((file) => `import "./${name}/${file}";`), 'export { run } from "./support";'].join("\n");
  await build({
    stdin: { contents, resolveDir: join(here, "host"), loader: "ts" },
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    external: ["vscode"],
  });
  return outfile;
}
