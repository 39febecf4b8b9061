// Runs test/index.ts inside the extension host of a real VS Code (its server, in Chromium), on a copy of a workspace.
//
//     node test/run.mjs EDITOR [EXTENSION]
//
// EDITOR is the folder in which test/install.mjs put VS Code; EXTENSION an unpacked .vsix, this folder by default.
import { spawn } from "node:child_process";
import { cp, mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [editor = "", extension = dirname(here)] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(join(editor, "package.json"))("playwright-core");
const START_MILLISECONDS = 60_000;
const MOST_MILLISECONDS = 240_000;

const folder = await mkdtemp(join(tmpdir(), "warpwright-vscode-"));
const [home, workspace, tests] = ["home", "workspace", "tests"].map((name) => join(folder, name));
await mkdir(join(workspace, ".vscode"), { recursive: true });
await mkdir(home);
await cp(join(here, "workspace"), workspace, { recursive: true });
await writeFile(join(workspace, ".vscode", "settings.json"), JSON.stringify({
  "files.autoSave": "off",
  "editor.codeLens": true,
  "warpwright.interpreter": process.env.WARPWRIGHT_TEST_PYTHON ?? "",
}));
await build({
  entryPoints: [join(here, "index.ts")],
  outfile: join(tests, "index.js"),
  bundle: true,
  platform: "node",
  format: "cjs",
  external: ["vscode"],
});

const port = await freePort();
const main = join(editor, "node_modules/code-server/lib/vscode/out/server-main.js");
const server = spawn(process.execPath, [
  main, "--accept-server-license-terms", "--without-connection-token", "--host", "127.0.0.1", "--port", String(port),
  "--server-data-dir", join(folder, "data"), "--extensions-dir", join(folder, "extensions"),
  "--enable-smoke-test-driver", "--disable-workspace-trust",
], { env: { ...process.env, HOME: home, XDG_CACHE_HOME: join(home, "cache"), TMPDIR: folder }, stdio: ["ignore", "pipe", "pipe"] });
const said = [];
for (const stream of [server.stdout, server.stderr]) {
  stream.on("data", (data) => said.push(String(data)));
}

let code = 1;
try {
  await until(() => said.join("").includes("Extension host agent listening"), START_MILLISECONDS, "VS Code did not start");
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  let ended;
  const exit = new Promise((resolve) => (ended = resolve));
  await page.exposeFunction("codeAutomationLog", (_kind, values) => {
    const line = values.join(" ");
    if (/^(ok|FAILED|\d+ of \d+) /.test(line)) {
      console.log(line);
    }
  });
  await page.exposeFunction("codeAutomationExit", (status) => ended(status));
  const remote = `vscode-remote://127.0.0.1:${port}`;
  const payload = [
    ["extensionDevelopmentPath", `${remote}${extension}`],
    ["extensionTestsPath", `${remote}${join(tests, "index.js")}`],
  ];
  await page.goto(`http://127.0.0.1:${port}/?folder=${workspace}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
  const late = new Promise((resolve) => setTimeout(resolve, MOST_MILLISECONDS, "late"));
  const status = await Promise.race([exit, late]);
  if (status === "late") {
    console.log(`the tests did not end in ${MOST_MILLISECONDS / 1000} s`);
    await page.screenshot({ path: join(tmpdir(), "warpwright-vscode-late.png") });
  }
  code = status === 0 ? 0 : 1;
  await browser.close();
} catch (error) {
  console.log(String(error), said.join("").slice(-2000));
} finally {
  server.kill();
  await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
process.exit(code);

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

async function until(holds, milliseconds, otherwise) {
  const end = Date.now() + milliseconds;
  while (!holds()) {
    if (Date.now() > end) {
      throw new Error(otherwise);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
