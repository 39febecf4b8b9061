/** Commands on a kernel. */
import * as assert from "node:assert/strict";
import { commands, Selection, window } from "vscode";
import { open, skip, test, verifies } from "../support";

test("optimize changes the kernel, and one undo brings it back", async () => {
  if (!(await verifies())) {
    skip("no compiler, or nothing to run a kernel on");
  }
  const document = await open("transpose.cu");
  const before = document.getText();
  const editor = window.activeTextEditor;
  assert.ok(editor);
  const place = document.positionAt(before.indexOf("tile["));
  editor.selection = new Selection(place, place);
  const result = await commands.executeCommand<{ status: string; message: string }>("warpwright.optimize");
  assert.equal(result.status, "applied", result.message);
  assert.notEqual(document.getText(), before);
  await commands.executeCommand("undo");
  assert.equal(document.getText(), before);
});
