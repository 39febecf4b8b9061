/** The Python that is chosen in Microsoft's extensions: used where the setting names none, and followed. */
import * as assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { ConfigurationTarget, extensions, workspace } from "vscode";
import { pythonIn } from "../../../src/python/places";
import { eventually, extension, inWorkspace, skip, test } from "../support";
import { reachesIndex } from "./libraries";

interface Fake {
  choose(path: string | undefined): void;
}

async function fake(name: string): Promise<Fake> {
  const found = extensions.getExtension<Fake>(`ms-python.${name}`);
  assert.ok(found, `the stand-in of ${name}`);
  return await found.activate();
}

test("what is chosen in the Python extensions runs the server, and a change of it is followed", async () => {
  const { server } = await extension();
  const base = server.python;
  assert.ok(base);
  if (!reachesIndex(base.path)) {
    skip("the package index cannot be reached");
  }
  const [first, second] = ["first", "second"].map((name) => {
    const folder = inWorkspace(name).fsPath;
    execFileSync(base.path, ["-m", "venv", "--without-pip", folder]);
    return pythonIn(folder);
  });
  const runs = async (path: string | undefined): Promise<void> => {
    await eventually(() => (server.running && server.python?.path === path ? true : undefined), `a server of ${path}`);
  };
  const [python, environments] = [await fake("python"), await fake("vscode-python-envs")];
  python.choose(first);
  const settings = workspace.getConfiguration("warpwright");
  await settings.update("interpreter", "", ConfigurationTarget.Workspace);
  await runs(first);
  python.choose(second);
  await runs(second);
  environments.choose(first);
  await runs(first);
  await settings.update("interpreter", undefined, ConfigurationTarget.Workspace);
  await runs(base.path);
  environments.choose(second);
  python.choose(undefined);
  assert.equal(server.python?.path, base.path);
});
