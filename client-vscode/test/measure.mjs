// Measures what a person at VS Code waits for.
//
//     node test/measure.mjs EDITOR EXTENSION PLAN
//
// PLAN is JSON: {file, windows, hovers, keys, spots: [{line, before, key}]}. Prints one JSON object of lists of milliseconds:
// `activation` of the extension and `opened`, from opening the file to its first findings, both in as many new windows;
// `project`, the same in a folder with CUDA files, for which the server starts before; `shown`, until VS Code shows the file;
// `hover` in the file; `squiggles`, from a key to the squiggles that it changes in the page. A spot is a line (1-based), the
// text that the cursor stands before, and a key that changes what is found; Backspace undoes it.
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { runInHost } from "./host.mjs";
import { startVscode } from "./vscode.mjs";
import { goTo, openFile, openWindow, see } from "./window.mjs";

const [editor, extension] = process.argv.slice(2, 4).map((path) => resolve(path));
const plan = JSON.parse(process.argv[4]);
const MOST_MILLISECONDS = 120_000;
const PAUSE_MILLISECONDS = 400;
const LATE_MILLISECONDS = 10_000;
const SETTLED_MILLISECONDS = 3_000;

const found = { activation: [], opened: [], project: [], shown: [], hover: [], squiggles: [] };
const vscode = await startVscode(editor, { files: resolve(plan.file, "..") });
try {
  const file = join(vscode.folder, "opened.cu");
  await copyFile(plan.file, file);
  const empty = join(vscode.folder, "empty");
  const project = join(vscode.folder, "project");
  await mkdir(empty);
  await mkdir(project);
  await copyFile(plan.file, join(project, "opened.cu"));
  for (let round = 0; round < plan.windows; round += 1) {
    await inHost(empty, { file, measure: "activation" });
    await inHost(project, { file: join(project, "opened.cu"), measure: "project" });
    await inHost(empty, { file, measure: "opened", hovers: round + 1 === plan.windows ? plan.hovers : 0 });
  }
  for (const spot of plan.spots) {
    found.squiggles.push(...(await keystrokes(spot)));
  }
  console.log(JSON.stringify(found));
} finally {
  await vscode.stop();
}

async function inHost(workspace, asked) {
  await writeFile(join(workspace, "asked.json"), JSON.stringify(asked));
  const { end } = await runInHost(vscode, {
    name: "measure",
    source: 'export { run } from "./measure/latency";',
    extension,
    workspace,
    heard: (line) => {
      if (line.startsWith("measured ")) {
        for (const [name, values] of Object.entries(JSON.parse(line.slice("measured ".length)))) {
          found[name].push(...values);
        }
      } else if (line.startsWith("FAILED")) {
        console.error(line);
      }
    },
    milliseconds: MOST_MILLISECONDS,
  });
  if (end !== "passed") {
    throw new Error(`${asked.measure} ${end}`);
  }
}

/** From each key at a spot to the squiggles that it changes, in a window of its own. */
async function keystrokes({ line, before, key }) {
  const page = await openWindow(vscode, { extension });
  await openFile(page, plan.file.split("/").at(-1));
  await see(page, ".squiggly-warning, .squiggly-info");
  await goTo(page, line);
  await page.keyboard.press("End");
  for (const _ of before) {
    await page.keyboard.press("ArrowLeft");
  }
  await page.evaluate(watch);
  await page.waitForTimeout(SETTLED_MILLISECONDS);
  const times = [];
  const counts = new Set();
  for (let each = 0; each < plan.keys; each += 1) {
    await page.evaluate((most) => globalThis.watchSquiggles(most), LATE_MILLISECONDS);
    await page.keyboard.press(each % 2 === 0 ? key : "Backspace");
    const { milliseconds, count } = await page.evaluate(() => globalThis.squigglesChanged);
    times.push(milliseconds);
    counts.add(count);
    await page.waitForTimeout(PAUSE_MILLISECONDS);
  }
  await page.close();
  if (counts.size !== 2) {
    throw new Error(`line ${line}: the squiggles in sight were ${[...counts]}, not one of two numbers`);
  }
  return times;
}

/**
 * In the page: after `watchSquiggles()` the promise `squigglesChanged` is of the first frame after the next key with another
 * number of squiggles, and of that number.
 */
function watch() {
  const count = () => document.querySelectorAll(".editor-instance [class*=squiggly-]").length;
  globalThis.watchSquiggles = (most) => {
    const before = count();
    globalThis.squigglesChanged = new Promise((resolve, reject) => {
      const look = (pressed) => requestAnimationFrame((now) => {
        if (count() !== before) {
          resolve({ milliseconds: now - pressed, count: count() });
        } else if (now - pressed > most) {
          reject(new Error(`still ${before} squiggles`));
        } else {
          look(pressed);
        }
      });
      document.addEventListener("keydown", (event) => look(event.timeStamp), { capture: true, once: true });
    });
  };
}
