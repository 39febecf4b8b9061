// Runs test/index.ts inside the extension host of a real VS Code (its server, in Chromium), on a copy of a workspace.
//
//     node test/run.mjs EDITOR [EXTENSION]
//
// EDITOR is the folder in which test/install.mjs put VS Code; EXTENSION an unpacked .vsix, this folder by default.
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { startVscode } from "./vscode.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [editor = "", extension = dirname(here)] = process.argv.slice(2).map((path) => resolve(path));
const MOST_MILLISECONDS = 240_000;

let code = 1;
const vscode = await startVscode(editor, { files: join(here, "workspace") });
try {
  const tests = join(vscode.folder, "tests", "index.js");
  await build({
    entryPoints: [join(here, "index.ts")],
    outfile: tests,
    bundle: true,
    platform: "node",
    format: "cjs",
    external: ["vscode"],
  });
  const page = await vscode.browser.newPage({ viewport: { width: 1280, height: 800 } });
  let ended;
  const exit = new Promise((resolve) => (ended = resolve));
  await page.exposeFunction("codeAutomationLog", (_kind, values) => {
    const line = values.join(" ");
    if (/^(ok|FAILED|\d+ of \d+) /.test(line)) {
      console.log(line);
    }
  });
  await page.exposeFunction("codeAutomationExit", (status) => ended(status));
  await page.goto(vscode.address([
    ["extensionDevelopmentPath", vscode.remote(extension)],
    ["extensionTestsPath", vscode.remote(tests)],
  ]));
  const late = new Promise((resolve) => setTimeout(resolve, MOST_MILLISECONDS, "late"));
  const status = await Promise.race([exit, late]);
  if (status === "late") {
    console.log(`the tests did not end in ${MOST_MILLISECONDS / 1000} s`);
    await page.screenshot({ path: join(tmpdir(), "warpwright-vscode-late.png") });
  }
  code = status === 0 ? 0 : 1;
} catch (error) {
  console.log(String(error), vscode.said().slice(-2000));
} finally {
  await vscode.stop();
}
process.exit(code);
