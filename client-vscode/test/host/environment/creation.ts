/** An environment that is really made, with the smallest extra, from the package index. */
import * as assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commands, ConfigurationTarget, workspace } from "vscode";
import type { Outcome } from "../../../src/environment/create";
import { pythonIn } from "../../../src/python/places";
import { eventually, extension, finding, inWorkspace, open, skip, test } from "../support";
import { bringLibraries, reachesIndex } from "./libraries";

async function create(folder: string): Promise<Outcome> {
  return await commands.executeCommand<Outcome>("warpwright.createEnvironment", { extras: ["emulator"], folder });
}

test("a new Python finds the libraries of the server", async () => {
  const { server } = await extension();
  assert.ok(server.python);
  if (!reachesIndex(server.python.path)) {
    skip("the package index cannot be reached");
  }
  bringLibraries(server.python.path);
});

test("an environment is created, has what was asked for, and runs the server of the extension", async () => {
  const { server, status, environments } = await extension();
  const before = server.python;
  assert.ok(before);
  if (!reachesIndex(before.path)) {
    skip("the package index cannot be reached");
  }
  const folder = join(environments.home, "..", "tried");
  const outcome = await create(folder);
  assert.deepEqual(outcome, { status: "created", python: pythonIn(folder) });
  await eventually(() => (server.python?.path === pythonIn(folder) && server.running ? true : undefined), "the new Python");
  const has = execFileSync(pythonIn(folder), ["-I", "-c", "import numpy, sys; print(sys.prefix)"], { encoding: "utf8" });
  assert.equal(has.trim(), folder);
  const installed = execFileSync(pythonIn(folder), ["-I", "-m", "pip", "list", "--format", "freeze"], { encoding: "utf8" });
  assert.doesNotMatch(installed, /^warpwright/m);
  await finding(await open("transpose.cu"), "bank-conflict");
  await workspace.getConfiguration("warpwright").update("interpreter", before.path, ConfigurationTarget.Global);
  await eventually(() => (server.python?.path === before.path && status.state.kind === "running" ? true : undefined), "the Python of before");
});

test("a folder with other files is left as it is", async () => {
  const folder = inWorkspace("mine").fsPath;
  mkdirSync(folder);
  writeFileSync(join(folder, "notes.txt"), "mine");
  // The command waits for an answer to its message.
  const outcome = await Promise.race([create(folder), new Promise((resolve) => setTimeout(resolve, 1_000, "asked"))]);
  assert.equal(outcome, "asked");
  assert.equal(existsSync(join(folder, "notes.txt")), true);
  assert.equal(existsSync(join(folder, "pyvenv.cfg")), false);
});
