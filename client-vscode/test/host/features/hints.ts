/** Hints behind the lines and lenses above the kernels: what costs, and settings that switch them off. */
import * as assert from "node:assert/strict";
import { commands, Range, workspace, type CodeLens, type InlayHint, type TextDocument } from "vscode";
import { eventually, finding, open, test } from "../support";

test("a hint behind a wasteful access says what it costs", async () => {
  const document = await open("transpose.cu");
  await finding(document, "bank-conflict");
  const hint = (await hints(document))[0];
  assert.ok(hint);
  assert.match(labelOf(hint), /32 wavefronts/);
  assert.match(document.lineAt(hint.position.line).text, /tile\[threadIdx\.x\]/);
});

test("settings switch hints and lenses off, at once", async () => {
  const document = await open("transpose.cu");
  await finding(document, "bank-conflict");
  const settings = workspace.getConfiguration("warpwright");
  for (const [setting, shown] of [["inlayHints", hints], ["codeLens", lenses]] as const) {
    assert.ok((await shown(document)).length > 0, setting);
    await settings.update(setting, false);
    await eventually(async () => ((await shown(document)).length === 0 ? true : undefined), `no ${setting}`);
    await settings.update(setting, undefined);
    await eventually(async () => ((await shown(document)).length > 0 ? true : undefined), `${setting} again`);
  }
});

async function hints(document: TextDocument): Promise<InlayHint[]> {
  const all = new Range(0, 0, document.lineCount, 0);
  return await commands.executeCommand<InlayHint[]>("vscode.executeInlayHintProvider", document.uri, all);
}

async function lenses(document: TextDocument): Promise<CodeLens[]> {
  const found = await commands.executeCommand<CodeLens[]>("vscode.executeCodeLensProvider", document.uri, 20);
  return found.filter((each) => each.command?.command.startsWith("warpwright."));
}

function labelOf(hint: InlayHint): string {
  return typeof hint.label === "string" ? hint.label : hint.label.map((part) => part.value).join("");
}
