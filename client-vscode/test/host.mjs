// Code that runs inside the extension host of a VS Code.
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

/**
 * Run a module's `run()` in a window of `vscode` on the folder `workspace`, with the extension of a folder.
 *
 * `source` is the module's TypeScript; its imports count from this folder. `heard` gets each line that it logs. Returns
 * "passed", "failed" where `run()` threw, or "late" after so many milliseconds, with a picture of the window in `picture`.
 */
export async function runInHost(vscode, { name, source, extension, workspace, heard, milliseconds }) {
  const module = join(vscode.folder, "tests", `${name}.js`);
  const picture = join(tmpdir(), `warpwright-vscode-${name}.png`);
  await build({
    stdin: { contents: source, resolveDir: here, loader: "ts" },
    outfile: module,
    bundle: true,
    platform: "node",
    format: "cjs",
    external: ["vscode"],
  });
  const page = await vscode.browser.newPage({ viewport: { width: 1280, height: 800 } });
  let ended;
  const exit = new Promise((resolve) => (ended = resolve));
  await page.exposeFunction("codeAutomationLog", (_kind, values) => heard(values.join(" ")));
  await page.exposeFunction("codeAutomationExit", (status) => ended(status === 0 ? "passed" : "failed"));
  await page.goto(vscode.address([
    ["extensionDevelopmentPath", vscode.remote(extension)],
    ["extensionTestsPath", vscode.remote(module)],
  ], workspace));
  const end = await Promise.race([exit, new Promise((resolve) => setTimeout(resolve, milliseconds, "late"))]);
  if (end === "late") {
    await page.screenshot({ path: picture });
  }
  await page.close();
  return { end, picture };
}
