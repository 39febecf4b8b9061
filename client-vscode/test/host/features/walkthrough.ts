/** The walkthrough of the first start: its links lead somewhere, and what they do. */
import * as assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { commands, extensions, languages, window } from "vscode";
import { eventually, extension, test } from "../support";

interface Step {
  readonly id: string;
  readonly description: string;
  readonly media: { readonly image: string | Readonly<Record<string, string>> };
  readonly completionEvents: readonly string[];
}

test("every link, event and picture of the walkthrough is there", async () => {
  await extension();
  const found = extensions.getExtension("warpwright.warpwright");
  assert.ok(found);
  const known = new Set(await commands.getCommands(true));
  const steps = (found.packageJSON as { contributes: { walkthroughs: { steps: Step[] }[] } }).contributes.walkthroughs[0]?.steps ?? [];
  assert.equal(steps.length, 5);
  for (const { id, description, media, completionEvents } of steps) {
    const links = [...description.matchAll(/\(command:([\w.]+)\)/g)].map((match) => match[1] ?? "");
    const events = completionEvents.filter((event) => event.startsWith("onCommand:")).map((event) => event.slice("onCommand:".length));
    assert.ok(links.length > 0 && events.length > 0, id);
    for (const command of [...links, ...events]) {
      assert.ok(known.has(command), `${id}: ${command}`);
    }
    for (const image of typeof media.image === "string" ? [media.image] : Object.values(media.image)) {
      assert.ok(existsSync(join(found.extensionPath, image)), image);
    }
  }
});

test("the sample has a finding, to which the next link leads", async () => {
  await extension();
  await commands.executeCommand("workbench.action.closeAllEditors");
  await commands.executeCommand("warpwright.openSample");
  const sample = window.activeTextEditor?.document;
  assert.ok(sample?.isUntitled);
  await eventually(() => (languages.getDiagnostics(sample.uri).some((each) => each.source === "warpwright") ? true : undefined), "a finding");
  await commands.executeCommand("warpwright.showFinding");
  const editor = window.activeTextEditor;
  assert.ok(editor && editor.document === sample);
  assert.match(sample.lineAt(editor.selection.active).text.slice(editor.selection.active.character), /^tile\[/);
  await commands.executeCommand("warpwright.openSample");
  assert.equal(window.activeTextEditor?.document, sample, "no second sample");
  await commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
});
