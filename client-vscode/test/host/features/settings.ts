/** Settings hold at once, and a project's own over the editor's. */
import * as assert from "node:assert/strict";
import { DiagnosticSeverity, workspace } from "vscode";
import { codeOf, eventually, finding, findings, inWorkspace, open, test } from "../support";

test("a rule that is ignored marks nothing", async () => {
  const document = await open("transpose.cu");
  await finding(document, "bank-conflict");
  const settings = workspace.getConfiguration("warpwright");
  await settings.update("ignore", ["memory"]);
  const marked = () => findings(document).some((each) => codeOf(each) === "bank-conflict");
  await eventually(() => (marked() ? undefined : true), "no mark");
  await settings.update("ignore", undefined);
  await eventually(() => (marked() ? true : undefined), "the mark");
});

test("a project's warpwright.toml holds over the editor's settings, from when it is written until it is gone", async () => {
  const document = await open("transpose.cu");
  const before = await finding(document, "bank-conflict");
  assert.equal(before.severity, DiagnosticSeverity.Warning);
  const file = inWorkspace("warpwright.toml");
  await workspace.fs.writeFile(file, Buffer.from('[severities]\nbank-conflict = "error"\n'));
  const severity = () => findings(document).find((each) => codeOf(each) === "bank-conflict")?.severity;
  await eventually(() => (severity() === DiagnosticSeverity.Error ? true : undefined), "an error");
  await workspace.fs.delete(file);
  await eventually(() => (severity() === DiagnosticSeverity.Warning ? true : undefined), "a warning again");
});
