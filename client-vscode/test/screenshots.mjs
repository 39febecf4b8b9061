// Takes the pictures of README.md and of the walkthrough from a real VS Code with the extension: media/*.png, light and
// dark, and icon.png from icon.svg; and the whole window of each view, wide and narrow: docs/pictures/views/*.png.
//
//     node test/screenshots.mjs EDITOR
//
// EDITOR is the folder in which test/install.mjs put VS Code; WARPWRIGHT_TEST_PYTHON names the Python that has warpwright.
// pngquant is needed, which makes the pictures small.
import { execFileSync } from "node:child_process";
import { mkdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { startVscode, until } from "./vscode.mjs";
import { clickOn, fixesAt, goTo, hideSideBars, hoverOn, openFile, openWindow, placeOf, run, see, SETTINGS } from "./window.mjs";

const client = dirname(dirname(fileURLToPath(import.meta.url)));
const editor = resolve(process.argv[2] ?? "");
const views = join(dirname(client), "docs", "pictures", "views");
const CONFLICT = "tile[threadIdx.x][threadIdx.y + j]";
const COMPILED_MILLISECONDS = 300_000;
const FOUND_MILLISECONDS = 300_000;
const WIDTH = 1400;
const WIDTHS = [WIDTH, 900];
const HEIGHT = 800;
const LINE = 20;

/** How each picture is brought about; the result is the rectangle of the page that it shows. */
const PICTURES = {
  async lenses(page) {
    const lenses = ["Optimize", "registers"].map(async (text) => (await see(page, ".codelens-decoration", text)).boundingBox());
    return await wholeLines(page, 12, ...(await Promise.all(lenses)), await placeOf(page, "int main()"));
  },
  async hover(page) {
    await hoverOn(page, CONFLICT);
    const picture = await see(page, '.monaco-hover img[src^="data:image/svg+xml"]');
    await until(() => picture.evaluate((image) => image.complete), COMPILED_MILLISECONDS, "the picture of the lanes");
    const hover = await picture.locator("xpath=ancestor::*[contains(@class, 'monaco-hover')][last()]").boundingBox();
    return around(1, hover, await placeOf(page, `${CONFLICT};`));
  },
  async fixes(page) {
    await clickOn(page, CONFLICT);
    await fixesAt(page);
    const menu = await (await see(page, ".action-widget")).boundingBox();
    return await wholeLines(page, 3, menu, await placeOf(page, "__global__ void"), await placeOf(page, `${CONFLICT};`));
  },
  async status(page) {
    await run(page, "warpwright: Show status");
    await see(page, ".quick-input-list .monaco-list-row", "analysis");
    return around(0, await (await see(page, ".quick-input-widget")).boundingBox());
  },
  async preview(page) {
    await page.setViewportSize({ width: WIDTH, height: 600 });
    await (await see(page, ".codelens-decoration a", "Optimize")).click();
    await see(page, ".monaco-diff-editor .modified .view-line", "TILE + 1", FOUND_MILLISECONDS);
    const offer = await (await see(page, ".notification-toast", "[correct")).boundingBox();
    return around(0, await (await see(page, ".editor-group-container")).boundingBox(), offer);
  },
};
/** The views in their order, each brought about anew at each width unless it stays; the first is what PICTURES left. */
const VIEWS = {
  async diff() {},
  async profile(page, isFirst) {
    if (isFirst) {
      await closeAll(page);
      await openFile(page, "transpose.cu");
      await goTo(page, 30);
      await (await see(page, ".codelens-decoration a", "Profile (emulated)", COMPILED_MILLISECONDS)).click();
      await see(page, ".tab.active", "transpose: results", FOUND_MILLISECONDS);
      await page.waitForTimeout(3_000); // the page in the frame draws itself
    }
  },
  async editor(page, isFirst) {
    if (isFirst) {
      await closeAll(page);
      await openFile(page, "transpose.cu");
      await goTo(page, 30);
      await see(page, ".codelens-decoration", "registers", COMPILED_MILLISECONDS);
    }
  },
  hover: PICTURES.hover,
  fixes: PICTURES.fixes,
  status: PICTURES.status,
  async problems(page, isFirst) {
    if (isFirst) {
      await page.keyboard.press("Control+Shift+M");
      await see(page, ".markers-panel .monaco-list-row", "bank conflict");
    }
  },
  async walkthrough(page, isFirst) {
    if (isFirst) {
      await page.keyboard.press("Control+J"); // the panel
    }
    await closeAll(page);
    await run(page, "Welcome: Open Walkthrough...");
    const input = await see(page, ".quick-input-widget .quick-input-box input");
    await input.fill("warpwright");
    await see(page, ".quick-input-list .monaco-list-row", "Get started with warpwright");
    await input.press("Enter");
    await see(page, ".getting-started-step", "Read a finding");
  },
};
const SHOWN = {
  "editor.lightbulb.enabled": "off",
  "editor.lineHeight": LINE,
  "editor.matchBrackets": "never",
  "editor.occurrencesHighlight": "off",
  "editor.renderLineHighlight": "none",
};

await mkdir(views, { recursive: true });
execFileSync(process.execPath, ["esbuild.mjs"], { cwd: client, stdio: "inherit" });
for (const [suffix, theme] of [["", "Light Modern"], ["-dark", "Dark Modern"]]) {
  const settings = { ...SETTINGS, ...SHOWN, "workbench.colorTheme": theme };
  const vscode = await startVscode(editor, { files: join(client, "test", "workspace"), settings, installed: client });
  try {
    await python(vscode);
    if (suffix === "") {
      await icon(vscode.browser);
    }
    const page = await openWindow(vscode, { width: WIDTH, height: HEIGHT, scale: 2 });
    await openFile(page, "transpose.cu");
    await hideSideBars(page);
    await goTo(page, 30);
    await see(page, ".codelens-decoration", "registers", COMPILED_MILLISECONDS);
    await placeOf(page, "32 wavefronts/request (ideal 1)");
    for (const [name, show] of Object.entries(PICTURES)) {
      const clip = await show(page);
      await page.waitForTimeout(500); // what fades in
      await kept(await page.screenshot({ clip }), join(client, "media", `${name}${suffix}.png`));
      await page.keyboard.press("Escape");
      await page.mouse.move(300, 15);
    }
    for (const [name, show] of Object.entries(VIEWS)) {
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: HEIGHT });
        await show(page, width === WIDTHS[0]);
        await page.waitForTimeout(1_000); // what fades in
        await kept(await page.screenshot({ scale: "css" }), join(views, `${name}-${width}${suffix}.png`));
        await page.keyboard.press("Escape");
        await page.mouse.move(300, 15); // over nothing
      }
    }
  } finally {
    await vscode.stop();
  }
}

/** Name the Python by a path in the home folder, so that no picture shows where it lies on this machine. */
async function python({ folder }) {
  const machine = join(folder, "data", "data", "Machine", "settings.json");
  const settings = JSON.parse(await readFile(machine, "utf8"));
  const named = settings["warpwright.interpreter"];
  if (named) {
    await symlink(dirname(dirname(named)), join(folder, "home", ".venv"));
    await writeFile(machine, JSON.stringify({ ...settings, "warpwright.interpreter": join(folder, "home", ".venv", "bin", "python3") }));
  }
}

async function icon(browser) {
  const page = await browser.newPage({ viewport: { width: 128, height: 128 } });
  await page.setContent(`<body style="margin: 0">${await readFile(join(client, "icon.svg"), "utf8")}`);
  await kept(await page.screenshot({ omitBackground: true }), join(client, "icon.png"));
  await page.close();
}

/** Close the editors and what stands above them. */
async function closeAll(page) {
  await run(page, "Notifications: Clear All Notifications");
  await run(page, "View: Close All Editors");
}

/** Write a picture, in 256 colours where pngquant is there. */
async function kept(picture, path) {
  try {
    execFileSync("pngquant", ["--force", "--strip", "--speed", "1", "--output", path, "-"], { input: picture });
  } catch (error) {
    throw new Error(`pngquant is needed (Debian, Ubuntu: apt install pngquant): ${error.message}`);
  }
  console.log(`${path}: ${Math.round((await stat(path)).size / 1000)} KB`);
}

/** The rectangle around some, with a margin at both sides. */
function around(margin, ...boxes) {
  const [left, top] = ["x", "y"].map((side) => Math.min(...boxes.map((box) => box[side])));
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  const x = Math.max(0, left - margin);
  return { x, y: top, width: right + margin - x, height: bottom - top };
}

/** The same, up and down to where a line of the text ends. */
async function wholeLines(page, margin, ...boxes) {
  const clip = around(margin, ...boxes);
  const line = (await placeOf(page, "__global__ void")).y - 2;
  const [first, last] = [Math.floor((clip.y - line) / LINE), Math.ceil((clip.y + clip.height - line) / LINE)];
  return { ...clip, y: line + first * LINE, height: (last - first) * LINE };
}
