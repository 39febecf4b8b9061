// What a person does and sees in a VS Code window. Text is found in the page as it is drawn; the mouse goes to its place
// on the screen, because Playwright's own hover and click scroll the editor and break its layout.
import { until } from "./vscode.mjs";

const SOON_MILLISECONDS = 90_000;
const FOCUS_MILLISECONDS = 5_000;

/** Settings under which a window shows the editor and little else. */
export const SETTINGS = {
  "chat.disableAIFeatures": true,
  "editor.minimap.enabled": false,
  "editor.stickyScroll.enabled": false,
  "security.workspace.trust.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
};

/** Open a window of `vscode` with the extension of a folder (`extension`), or with those that are installed. */
export async function openWindow(vscode, { extension, width = 1280, height = 800, scale = 1 } = {}) {
  const page = await vscode.browser.newPage({ viewport: { width, height }, deviceScaleFactor: scale });
  const payload = extension === undefined ? [] : [["extensionDevelopmentPath", vscode.remote(extension)]];
  await page.goto(vscode.address(payload), { timeout: SOON_MILLISECONDS });
  await see(page, ".monaco-workbench .part.editor");
  return page;
}

/** Wait for what a selector finds and is visible. */
export async function see(page, selector, text = undefined, timeout = SOON_MILLISECONDS) {
  const found = page.locator(selector).filter({ visible: true, ...(text === undefined ? {} : { hasText: text }) }).first();
  await found.waitFor({ timeout });
  return found;
}

/** Close the side bars, so that there is room for the editor. */
export async function hideSideBars(page) {
  for (const [part, key] of [[".part.sidebar", "Control+B"], [".part.auxiliarybar", "Control+Alt+B"]]) {
    const bar = page.locator(part);
    if (await bar.isVisible()) {
      await page.keyboard.press(key);
      await bar.waitFor({ state: "hidden" });
    }
  }
}

/** Run a command by its title, as in the palette. */
export async function run(page, title) {
  await choose(page, "F1", `>${title}`, title);
}

export async function openFile(page, name) {
  // What is still starting may take the focus between the row and its key, which closes the input without opening.
  const opened = async () => {
    await choose(page, "Control+P", name, name);
    return await see(page, `.tab.active[data-resource-name="${name}"]`, undefined, FOCUS_MILLISECONDS);
  };
  await until(() => opened().catch(() => undefined), SOON_MILLISECONDS, `${name} is not opened`);
  await see(page, ".editor-instance .monaco-editor.focused");
}

/** Put the cursor on a line (1-based), which is scrolled to. */
export async function goTo(page, line) {
  await choose(page, "Control+G", `:${line}`, `line ${line}`);
  await see(page, ".statusbar-item", `Ln ${line},`);
  await see(page, ".editor-instance .monaco-editor.focused");
}

/** The fix of the finding at the cursor, in its menu. A key is lost while VS Code closes another menu: it is pressed again. */
export async function fixesAt(page) {
  const opened = async () => {
    await page.keyboard.press("Control+.");
    return await see(page, ".action-widget .monaco-list-row", "Pad the rows of tile", FOCUS_MILLISECONDS);
  };
  return await until(() => opened().catch(() => undefined), SOON_MILLISECONDS, "no menu of fixes");
}

/** Open the quick input with a key, fill it, and take its first row once that has a text. */
async function choose(page, key, filter, row) {
  // A window that is still starting takes the focus, which closes the input again.
  const opened = async () => {
    await page.keyboard.press(key);
    const input = await see(page, ".quick-input-widget .quick-input-box input", undefined, FOCUS_MILLISECONDS);
    await input.fill(filter, { timeout: FOCUS_MILLISECONDS });
    return { input, found: await see(page, ".quick-input-list .monaco-list-row", row, FOCUS_MILLISECONDS) };
  };
  const { input, found } = await until(() => opened().catch(() => undefined), SOON_MILLISECONDS, `no input for ${filter}`);
  await input.press("Enter");
  await found.waitFor({ state: "hidden" });
}

/** The rectangle on the screen of a text of the editor: {x, y, width, height}. */
export async function placeOf(page, text, milliseconds = SOON_MILLISECONDS) {
  return await until(() => page.evaluate(rectangleOf, text), milliseconds, `the editor does not show ${text}`);
}

function rectangleOf(text) {
  for (const line of document.querySelectorAll(".editor-instance .view-line")) {
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    const nodes = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      nodes.push(node);
    }
    const at = nodes.map((node) => node.data).join("").replaceAll("\u00a0", " ").indexOf(text);
    if (at < 0) {
      continue;
    }
    const range = document.createRange();
    let before = 0;
    for (const node of nodes) {
      for (const [offset, set] of [[at, "setStart"], [at + text.length, "setEnd"]]) {
        if (before <= offset && offset <= before + node.length) {
          range[set](node, offset - before);
        }
      }
      before += node.length;
    }
    const { x, y, width, height } = range.getBoundingClientRect();
    return { x, y, width, height };
  }
  return null;
}

/** Put the mouse on a text of the editor, and wait for the hover; its element. */
export async function hoverOn(page, text) {
  // What is drawn anew below the mouse ends a hover before it is shown: it is moved there again.
  const hovered = async () => {
    const { x, y, width, height } = await placeOf(page, text);
    await page.mouse.move(x + width / 2, y + height / 2 + 100);
    await page.mouse.move(x + width / 2, y + height / 2, { steps: 3 });
    return await see(page, ".monaco-hover .hover-contents", undefined, FOCUS_MILLISECONDS);
  };
  return await until(() => hovered().catch(() => undefined), SOON_MILLISECONDS, `no hover on ${text}`);
}

export async function clickOn(page, text) {
  const { x, y, height } = await placeOf(page, text);
  await page.mouse.click(x + 3, y + height / 2);
}

/** Whether two rectangles on the screen have a part in common. */
export function overlaps(one, other) {
  const meet = (at, size) => one[at] < other[at] + other[size] && other[at] < one[at] + one[size];
  return meet("x", "width") && meet("y", "height");
}

/** Open an empty file of the workspace and type into it. */
export async function write(page, name, text) {
  await openFile(page, name);
  await page.keyboard.type(text);
}
