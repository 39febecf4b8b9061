/** Interpreters that come and go: what is said of one that does not work, and what is left of servers. */
import * as assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ConfigurationTarget, workspace } from "vscode";
import { eventually, extension, finding, inWorkspace, open, skip, test } from "../support";

async function select(path: string | undefined): Promise<void> {
  await workspace.getConfiguration("warpwright").update("interpreter", path, ConfigurationTarget.Workspace);
}

/** The servers that this extension host started and that live. */
function servers(): string[] {
  const listed = execFileSync("ps", ["-o", "stat=,args=", "--ppid", String(process.pid)], { encoding: "utf8" });
  return listed.split("\n").filter((line) => line.includes("warpwright.lsp") && !line.startsWith("Z"));
}

async function reason(words: RegExp): Promise<string> {
  const { status } = await extension();
  return await eventually(() => {
    const { state } = status;
    return state.kind === "stopped" && words.test(state.reason) ? state.reason : undefined;
  }, `a reason like ${words}`);
}

function fake(name: string, script: string): string {
  const path = inWorkspace(name).fsPath;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

test("a Python that is too old, broken or no Python is named, and the right one brings the server back", async () => {
  if (process.platform === "win32") {
    skip("the fakes are shell scripts");
  }
  const { status, server } = await extension();
  await select(fake("old", "printf 'warpwright-python\\t3.9.2\\t/usr/bin/python3\\t\\n'"));
  assert.match(await reason(/3\.9\.2/), /The Python of the setting .*is Python 3\.9\.2\. 3\.11 or newer is needed\./);
  const orphan = inWorkspace("orphan").fsPath;
  mkdirSync(join(orphan, "bin"), { recursive: true });
  writeFileSync(join(orphan, "pyvenv.cfg"), "home = /nowhere/bin\n");
  symlinkSync("/nowhere/bin/python3", join(orphan, "bin", "python"));
  await select("${workspaceFolder}/orphan");
  await reason(/made with the Python in \/nowhere\/bin, that is gone\. Make the environment anew\./);
  await select(fake("rubbish", "echo %PDF-1.7"));
  await reason(/does not answer as Python does: it said "%PDF-1\.7"/);
  assert.deepEqual(servers(), []);
  await select(undefined);
  await eventually(() => (status.state.kind === "running" ? true : undefined), "the restart");
  assert.equal(servers().length, 1);
  assert.ok(server.running);
  await finding(await open("transpose.cu"), "bank-conflict");
});

test("a start that hangs is called off by the next, and many changes at once leave one server", async () => {
  const { status } = await extension();
  const hangs = fake("hangs", "exec sleep 617");
  await select(hangs);
  await eventually(() => (status.state.kind === "starting" ? true : undefined), "the start");
  for (const path of [undefined, hangs, "python3-that-is-not-there", hangs, undefined]) {
    await select(path);
  }
  await eventually(() => (status.state.kind === "running" ? true : undefined), "the restart");
  assert.equal(servers().length, 1);
  const sleeping = execFileSync("ps", ["-eo", "stat=,args="], { encoding: "utf8" }).split("\n");
  assert.deepEqual(sleeping.filter((line) => line.includes("sleep 617") && !line.startsWith("Z")), []);
});

test("a server that is stopped, or hangs, leaves no process", async () => {
  const { server, status } = await extension();
  const { pid } = server;
  assert.ok(pid);
  process.kill(pid, "SIGSTOP");
  await server.stop();
  await eventually(() => (servers().length === 0 ? true : undefined), "the end of a server that hangs");
  await server.restart();
  assert.equal(status.state.kind, "running");
  await server.stop();
  assert.deepEqual(servers(), []);
  await server.restart();
  assert.equal(servers().length, 1);
});
