/** Findings as they are marked in the text, and what is said of them. */
import * as assert from "node:assert/strict";
import { commands, DiagnosticSeverity, window, type CodeLens } from "vscode";
import { codeOf, eventually, finding, findings, hoverText, open, test } from "../support";

test("a bank conflict is marked, with a code that leads to the rule's page", async () => {
  const document = await open("transpose.cu");
  const found = await finding(document, "bank-conflict");
  assert.equal(found.severity, DiagnosticSeverity.Warning);
  assert.match(document.getText(found.range), /tile\[/);
  assert.ok(typeof found.code === "object" && found.code.target.toString().includes("bank-conflict"));
});

test("a finding leads to the launch that fixes the block's shape", async () => {
  const document = await open("transpose.cu");
  const found = await finding(document, "bank-conflict");
  const related = found.relatedInformation ?? [];
  const places = related.map((each) => document.getText(each.location.range));
  assert.ok(places.some((text) => text.includes("transpose")), JSON.stringify(related));
});

test("a barrier that part of a block misses leads to the condition that splits the block", async () => {
  const document = await open("barrier.cu");
  const found = await finding(document, "barrier-in-divergent-branch");
  const places = (found.relatedInformation ?? []).map((each) => document.getText(each.location.range));
  assert.ok(places.some((text) => text.includes("t < 128")), String(places));
});

test("an edit that cures a finding takes its mark away, and undoing it brings it back", async () => {
  const document = await open("transpose.cu");
  await finding(document, "bank-conflict");
  const at = document.positionAt(document.getText().indexOf("[TILE];") + "[TILE".length);
  const editor = window.activeTextEditor;
  assert.ok(await editor?.edit((edit) => edit.insert(at, " + 1")));
  const marks = () => findings(document).filter((each) => codeOf(each) === "bank-conflict").length;
  await eventually(() => (marks() === 0 ? true : undefined), "no mark");
  await commands.executeCommand("undo");
  await eventually(() => (marks() > 0 ? true : undefined), "the mark");
  await commands.executeCommand("workbench.action.files.revert");
});

test("a hover shows the lanes' banks", async () => {
  const document = await open("transpose.cu");
  await finding(document, "bank-conflict");
  const text = await hoverText(document, "tile[threadIdx.x]");
  assert.match(text, /bank/);
  assert.match(text, /```|<svg|!\[/, "a picture");
});

test("a hover on the kernel's name says how it is launched", async () => {
  const document = await open("transpose.cu");
  const text = await hoverText(document, "transpose(const");
  assert.match(text, /32 x 8/);
});

test("lenses stand above the kernel", async () => {
  const document = await open("transpose.cu");
  const lenses = await eventually(async () => {
    const found = await commands.executeCommand<CodeLens[]>("vscode.executeCodeLensProvider", document.uri, 20);
    return found.some((each) => each.command?.command === "warpwright.optimize") ? found : undefined;
  }, "the lens Optimize");
  assert.ok(lenses.length >= 3);
});
