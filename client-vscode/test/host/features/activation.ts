/** Starting, and a Python that cannot be used. */
import * as assert from "node:assert/strict";
import { join } from "node:path";
import { commands, workspace } from "vscode";
import { eventually, extension, open, test } from "../support";

test("opening a CUDA file activates the extension and starts the server", async () => {
  await open("transpose.cu");
  assert.equal((await extension()).status.state.kind, "running");
});

test("the doctor names what was found and what was not", async () => {
  const result = await commands.executeCommand<{ parts: { name: string; found: boolean }[] }>("warpwright.doctor");
  const names = result.parts.map((part) => part.name);
  assert.ok(["warpwright", "analysis", "compiler", "emulator", "GPU"].every((name) => names.includes(name)), String(names));
  assert.ok(result.parts.find((part) => part.name === "analysis")?.found);
});

test("a Python that is not there is named, and the right one brings the server back", async () => {
  const { status } = await extension();
  const settings = workspace.getConfiguration("warpwright");
  await settings.update("interpreter", join("nowhere", "python3"));
  const state = await eventually(() => (status.state.kind === "stopped" ? status.state : undefined), "the refusal");
  assert.match(state.reason, /nowhere.python3, is not there/);
  await settings.update("interpreter", undefined);
  await eventually(() => (status.state.kind === "running" ? true : undefined), "the restart");
});
