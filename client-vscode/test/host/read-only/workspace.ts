/** A workspace in which nothing can be written: analysis works, and nothing is left in it. */
import * as assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { commands, Selection, window } from "vscode";
import { actionsAt, finding, hoverText, inWorkspace, open, skip, test, verifies } from "../support";

const listed = () => readdirSync(inWorkspace(".").fsPath, { recursive: true }).map(String).sort();
const before = listed();

test("findings, hovers and fixes are there", async () => {
  const document = await open("transpose.cu");
  const found = await finding(document, "bank-conflict");
  assert.match(await hoverText(document, "tile[threadIdx.x]"), /bank/);
  assert.ok((await actionsAt(document, found)).length > 1);
});

test("optimize is made in the editor, and nothing is written", async () => {
  if (!(await verifies())) {
    skip("no compiler, or nothing to run a kernel on");
  }
  const document = await open("transpose.cu");
  const editor = window.activeTextEditor;
  assert.ok(editor);
  const place = document.positionAt(document.getText().indexOf("tile["));
  editor.selection = new Selection(place, place);
  for (const [command, status] of [["optimize", "offered"], ["applyPreview", "applied"]] as const) {
    const result = await commands.executeCommand<{ status: string; message: string }>(`warpwright.${command}`);
    assert.equal(result.status, status, result.message);
  }
  assert.ok(document.isDirty);
  assert.deepEqual(listed(), before);
});
