// A real VS Code (its own server, shown in Chromium) on a copy of a workspace, with a home and extensions of its own.
import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const START_MILLISECONDS = 60_000;

/**
 * Start VS Code of the folder `editor`, in which test/install.mjs put it.
 *
 * `files` is the folder that its workspace is a copy of, `settings` are the workspace's, `trust` turns workspace trust on.
 * `installed` is an unpacked extension that is installed as a user has it, with notifications, which VS Code hides where an
 * extension is tested; `others` is a folder of extensions that are there, too. The result has the copy's path (`workspace`), a folder for what else is needed
 * (`folder`), the `browser`, `address(payload)` of the window, `said()` by the server, and `stop()`; a window on another
 * workspace is `address(payload, await copied(name, files, settings))`.
 */
export async function startVscode(editor, { files, settings = {}, installed, others, trust = false }) {
  const { chromium } = createRequire(join(editor, "package.json"))("playwright-core");
  const folder = await mkdtemp(join(tmpdir(), "warpwright-vscode-"));
  const home = join(folder, "home");
  await mkdir(home);
  await writeSettings(join(folder, "data", "data", "Machine"), {
    "warpwright.interpreter": process.env.WARPWRIGHT_TEST_PYTHON ?? "",
  });
  const copied = (name, from, given) => copyWorkspace(join(folder, name), from, given);
  const workspace = await copied("workspace", files, settings);
  const env = { ...process.env, HOME: home, XDG_CACHE_HOME: join(home, "cache"), TMPDIR: folder };
  const main = join(editor, "node_modules/code-server/lib/vscode/out/server-main.js");
  const own = ["--server-data-dir", join(folder, "data"), "--extensions-dir", join(folder, "extensions")];
  await mkdir(join(folder, "extensions"));
  for (const name of others === undefined ? [] : await readdir(others)) {
    await symlink(join(others, name), join(folder, "extensions", `ms-python.${name}-0.0.1`));
  }
  if (installed !== undefined) {
    await symlink(installed, join(folder, "extensions", "warpwright.warpwright-0.1.0"));
  }
  const port = await freePort();
  const server = spawn(process.execPath, [
    main, "--accept-server-license-terms", "--without-connection-token", "--host", "127.0.0.1", "--port", String(port), ...own,
    ...(installed === undefined ? ["--enable-smoke-test-driver"] : []), ...(trust ? [] : ["--disable-workspace-trust"]),
  ], { env, stdio: ["ignore", "pipe", "pipe"] });
  const heard = [];
  for (const stream of [server.stdout, server.stderr]) {
    stream.on("data", (data) => heard.push(String(data)));
  }
  const said = () => heard.join("");
  let browser;
  const stop = async () => {
    await browser?.close();
    server.kill();
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
  try {
    await until(() => said().includes("Extension host agent listening"), START_MILLISECONDS, "VS Code did not start");
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  } catch (error) {
    await stop();
    throw new Error(`${error.message}\n${said().slice(-2000)}`);
  }
  const remote = (path) => `vscode-remote://127.0.0.1:${port}${path}`;
  const address = (payload = [], opened = workspace) =>
    `http://127.0.0.1:${port}/?folder=${opened}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
  return { folder, workspace, browser, remote, address, copied, said, stop };
}

/** Copy the folder `files` to `workspace` and give it settings. Returns its path. */
async function copyWorkspace(workspace, files, settings = {}) {
  await cp(files, workspace, { recursive: true });
  await writeSettings(join(workspace, ".vscode"), { "files.autoSave": "off", "editor.codeLens": true, ...settings });
  return workspace;
}

async function writeSettings(folder, settings) {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "settings.json"), JSON.stringify(settings));
}

/** Wait until `holds()`; throws an Error with the words of `otherwise` after so many milliseconds. */
export async function until(holds, milliseconds, otherwise) {
  const end = Date.now() + milliseconds;
  for (;;) {
    const found = await holds();
    if (found) {
      return found;
    }
    if (Date.now() > end) {
      throw new Error(otherwise);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
