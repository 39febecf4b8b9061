/** The status item and the doctor's page. */
import * as assert from "node:assert/strict";
import { commands, ConfigurationTarget, window, workspace } from "vscode";
import { eventually, extension, open, test } from "../support";

test("the status knows what is on this machine by itself, and looks again when the model is another", async () => {
  await open("transpose.cu");
  const { status } = await extension();
  const parts = await eventually(() => (status.parts.length > 0 ? status.parts : undefined), "what was found");
  assert.deepEqual(parts.map((part) => part.name), ["analysis", "compiler", "emulator", "GPU", "model"]);
  await workspace.getConfiguration("warpwright").update("model", "/nowhere/small.gguf", ConfigurationTarget.Workspace);
  await eventually(() => (status.parts !== parts && status.parts.at(-1)?.found === false ? true : undefined), "the other model");
  await workspace.getConfiguration("warpwright").update("model", undefined, ConfigurationTarget.Workspace);
});

test("the status says what is under way", async () => {
  const { status } = await extension();
  assert.equal(status.text, "$(check) warpwright");
  let end: (() => void) | undefined;
  const work = status.during("Optimizing", new Promise<void>((resolve) => (end = resolve)));
  assert.equal(status.text, "$(sync~spin) warpwright: Optimizing");
  end?.();
  await work;
  assert.equal(status.text, "$(check) warpwright");
});

test("the doctor's page is shown as Markdown", async () => {
  await extension();
  await commands.executeCommand("warpwright.showDoctor");
  const labels = () => window.tabGroups.all.flatMap((group) => group.tabs.map((tab) => tab.label));
  await eventually(() => (labels().some((label) => label.includes("On this machine")) ? true : undefined), "the page");
  const text = () => workspace.textDocuments.find((each) => each.uri.scheme === "warpwright-doctor")?.getText();
  await eventually(() => (/^# warpwright on this machine\n[^]*\| analysis \| found \|/.test(text() ?? "") ? true : undefined), "its text");
  await commands.executeCommand("workbench.action.closeActiveEditor");
});
