// Looks at the page of a real VS Code in which the extension is installed: what a person sees, with mouse and keys alone.
//
//     node test/page.mjs EDITOR [EXTENSION]
//
// EDITOR is the folder in which test/install.mjs put VS Code; EXTENSION an unpacked .vsix, else this folder is built and
// tested. A line for each test, as test/run.mjs prints them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { startVscode, until } from "./vscode.mjs";
import { clickOn, fixesAt, goTo, hideSideBars, hoverOn, openFile, openWindow, overlaps, placeOf, run, see, SETTINGS, write } from "./window.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [editor = "", extension = dirname(here)] = process.argv.slice(2).map((path) => resolve(path));
const SOON_MILLISECONDS = 90_000;
const VERIFIED_MILLISECONDS = 120_000;
const DRAFTED_MILLISECONDS = 180_000;
const CONFLICT = "tile[threadIdx.x][threadIdx.y + j]";

/** A test that says why it cannot be made on this machine. */
class Skipped extends Error {}

const tests = {
  "a finding is underlined, and counted beside the file's name": async (page) => {
    const text = await placeOf(page, CONFLICT);
    const squiggle = await see(page, ".view-overlays .squiggly-warning");
    assert.ok(overlaps(text, await squiggle.boundingBox()), "the squiggle is under the access");
    await see(page, ".tab.active .label-name, .tab.active .monaco-icon-label", "transpose.cu");
  },
  "the hover has the finding with a link to its rule, and the picture of the lanes": async (page) => {
    await hoverOn(page, CONFLICT);
    await see(page, ".monaco-hover", "32 wavefronts/request (ideal 1)");
    await see(page, ".monaco-hover a", "bank-conflict");
    await see(page, ".monaco-hover", "launched here with block 32 x 8");
    const picture = await see(page, '.monaco-hover img[src^="data:image/svg+xml"]');
    const drawn = await until(() => picture.evaluate((image) => image.complete && image.naturalWidth), SOON_MILLISECONDS, "no picture");
    const { width } = await picture.boundingBox();
    assert.ok(width > 400 && width >= drawn - 1, `the picture has ${width} of its ${drawn} pixels`);
    await page.keyboard.press("Escape");
  },
  "an inlay hint behind the line says what the access costs": async (page) => {
    const code = await placeOf(page, `${CONFLICT};`);
    const hint = await placeOf(page, "32 wavefronts/request (ideal 1)");
    assert.ok(hint.x > code.x + code.width - 1 && Math.abs(hint.y - code.y) < 4, "the hint stands behind the code");
  },
  "the kernel's commands stand above it": async (page) => {
    const kernel = await placeOf(page, "__global__ void transpose");
    for (const title of ["Optimize", "Verify", "Profile (emulated)", "Show SASS"]) {
      const { y, height } = await (await see(page, ".codelens-decoration a", title)).boundingBox();
      assert.ok(y < kernel.y && kernel.y - (y + height) < 10, `${title} is above the kernel`);
    }
    await see(page, ".codelens-decoration", "1 finding");
  },
  "the status menu says what was found on this machine": async (page) => {
    await see(page, '.statusbar-item[aria-label*="warpwright"]');
    const parts = await found(page);
    assert.ok(parts.get("analysis"), `analysis is found: ${[...parts]}`);
    assert.ok(["compiler", "GPU", "model"].every((part) => parts.has(part)), String([...parts]));
  },
  "the menu at a finding has its fixes, silencing it, and the kernel's commands": async (page) => {
    await clickOn(page, CONFLICT);
    await fixesAt(page);
    for (const title of ["Pad the rows of tile", "Suppress bank-conflict", "Optimize kernel transpose", "Reduce memory of kernel"]) {
      await see(page, ".action-widget .monaco-list-row", title);
    }
    await page.keyboard.press("Escape");
  },
  "a fix is verified, and takes the finding away": async (page) => {
    await needs(page, "compiler");
    await clickOn(page, CONFLICT);
    await (await fixesAt(page)).click();
    await placeOf(page, "tile[TILE][TILE + 1]", VERIFIED_MILLISECONDS);
    await page.locator(".view-overlays .squiggly-warning").first().waitFor({ state: "detached", timeout: SOON_MILLISECONDS });
    await page.keyboard.press("Control+Z");
    await placeOf(page, "tile[TILE][TILE];");
    await see(page, ".view-overlays .squiggly-warning");
  },
  "a search shows its progress and can be cancelled": async (page) => {
    await needs(page, "compiler");
    await (await see(page, ".codelens-decoration a", "Optimize")).click();
    const toast = await see(page, ".notification-toast", "Optimizing");
    await toast.getByRole("button", { name: "Cancel" }).click();
    await toast.waitFor({ state: "hidden", timeout: SOON_MILLISECONDS });
    await placeOf(page, "tile[TILE][TILE];");
  },
  "what a search found is shown as a diff with its badge, and applied": async (page) => {
    await needs(page, "compiler");
    await (await see(page, ".codelens-decoration a", "Optimize")).click();
    await see(page, ".monaco-diff-editor .modified .view-line", "TILE + 1", VERIFIED_MILLISECONDS);
    await see(page, ".tab.active", "[correct");
    const offer = await see(page, ".notification-toast", "[correct");
    await offer.getByRole("button", { name: "Apply" }).click();
    await page.locator(".monaco-diff-editor").first().waitFor({ state: "detached", timeout: SOON_MILLISECONDS });
    await placeOf(page, "tile[TILE][TILE + 1]");
    await page.keyboard.press("Control+Z");
    await placeOf(page, "tile[TILE][TILE];");
  },
  "a profile is drawn beside the text, and a click on one of its lines leads there": async (page) => {
    await needs(page, "emulator");
    await (await see(page, ".codelens-decoration a", "Profile (emulated)")).click();
    await see(page, ".tab.active", "transpose: results", VERIFIED_MILLISECONDS);
    const frame = await until(() => withLines(page), SOON_MILLISECONDS, "no page has lines of source");
    const row = frame.locator("tr[data-line]", { hasText: CONFLICT });
    const { width } = await row.locator("rect.excess").first().boundingBox();
    assert.ok(width > 1, "the bar of the conflict is drawn");
    const card = await frame.locator(".tile").first().evaluate((tile) => getComputedStyle(tile).borderTopWidth);
    assert.equal(card, "1px", "the page's style is allowed");
    await row.locator("td.n").click();
    await see(page, '.tab.active[data-resource-name="transpose.cu"]');
    await see(page, ".statusbar-item", "Ln 35,");
    await close(page, "transpose: results");
  },
  "the walkthrough shows its steps and their pictures": async (page) => {
    await run(page, "Welcome: Open Walkthrough...");
    const input = await see(page, ".quick-input-widget .quick-input-box input");
    await input.fill("warpwright");
    await see(page, ".quick-input-list .monaco-list-row", "Get started with warpwright");
    await input.press("Enter");
    for (const step of ["See what this machine has", "Open a kernel", "Read a finding", "Take a fix", "Search for a faster kernel"]) {
      await see(page, ".getting-started-step", step);
    }
    await hideSideBars(page); // beside them there is no room for pictures
    const picture = await see(page, ".getting-started-media img");
    await until(() => picture.evaluate((image) => image.naturalWidth > 300), SOON_MILLISECONDS, "no picture of the first step");
    await close(page, "Welcome"); // it takes the focus again once it has drawn itself
  },
  "a comment becomes a kernel in grey, which Tab takes": async (page) => {
    await needs(page, "model");
    await write(page, "draft.cu", "// kernel: copy a matrix of floats\n");
    await see(page, ".ghost-text-decoration, .ghost-text", undefined, DRAFTED_MILLISECONDS);
    await page.keyboard.press("Tab");
    await goTo(page, 2);
    await placeOf(page, "read as:");
    await page.locator(".ghost-text-decoration").first().waitFor({ state: "detached", timeout: SOON_MILLISECONDS });
  },
};

if (extension === dirname(here)) {
  execFileSync(process.execPath, ["esbuild.mjs"], { cwd: extension, stdio: "inherit" });
}
let failed = false;
const vscode = await startVscode(editor, { files: join(here, "workspace"), settings: { ...SETTINGS, "warpwright.ghostTextSeconds": DRAFTED_MILLISECONDS / 1000 }, installed: extension });
try {
  const page = await openWindow(vscode);
  await openFile(page, "transpose.cu");
  await goTo(page, 31);
  for (const [name, test] of Object.entries(tests)) {
    const started = Date.now();
    try {
      await test(page);
      console.log(`page: ok ${name} (${Date.now() - started} ms)`);
    } catch (error) {
      const skipped = error instanceof Skipped;
      const picture = join(tmpdir(), `warpwright-page-${Object.keys(tests).indexOf(name)}.png`);
      if (!skipped) {
        failed = true;
        await page.screenshot({ path: picture });
        await page.keyboard.press("Escape");
      }
      console.log(`page: ${skipped ? "skipped" : "FAILED"} ${name}: ${skipped ? error.message : `${error.stack}\n${picture}`}`);
    }
  }
} catch (error) {
  failed = true;
  console.log(`page: FAILED the start: ${error.stack}\n${vscode.said().slice(-2000)}`);
} finally {
  await vscode.stop();
}
process.exit(failed ? 1 : 0);

/** The frame of a webview that shows lines of source; undefined while none does. */
async function withLines(page) {
  for (const frame of page.frames()) {
    if (await frame.locator("tr[data-line]").count().catch(() => 0)) {
      return frame;
    }
  }
  return undefined;
}

/** Close a tab by its title. */
async function close(page, title) {
  const tab = await see(page, ".tab", title);
  await tab.click({ button: "middle" });
  await tab.waitFor({ state: "detached", timeout: SOON_MILLISECONDS });
}

/** What the status menu says is there: each part by its name, and whether it was found. */
async function found(page) {
  await run(page, "warpwright: Show status");
  await see(page, ".quick-input-list .monaco-list-row", "analysis");
  const rows = await page.locator(".quick-input-list .monaco-list-row").evaluateAll((elements) =>
    elements.map((row) => [row.querySelector(".label-name")?.textContent.trim(), row.querySelector(".codicon-check") !== null]),
  );
  await page.keyboard.press("Escape");
  return new Map(rows);
}

/** Skips the test where the status menu has not found a part. */
async function needs(page, part) {
  if (!(await found(page)).get(part)) {
    throw new Skipped(`no ${part} was found on this machine`);
  }
}
