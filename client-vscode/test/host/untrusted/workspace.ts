/** A folder that its user has not trusted: its text is analysed, and nothing of it is compiled or run. */
import * as assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { commands, workspace } from "vscode";
import { actionsAt, extension, finding, hoverText, open, test } from "../support";

test("the folder is analysed", async () => {
  assert.equal(workspace.isTrusted, false);
  const document = await open("transpose.cu");
  assert.equal((await extension()).status.state.kind, "running");
  await finding(document, "bank-conflict");
  assert.match(await hoverText(document, "tile[threadIdx.x]"), /bank/);
});

test("no action is offered that is verified by a run", async () => {
  const document = await open("transpose.cu");
  const actions = await actionsAt(document, await finding(document, "bank-conflict"));
  const titles = actions.map((each) => each.title);
  assert.ok(titles.includes("Suppress bank-conflict on this line"), String(titles));
  assert.deepEqual(titles.filter((title) => /tile|transpose/.test(title)), []);
});

test("no command that compiles or runs a kernel reaches the server", async () => {
  const document = await open("transpose.cu");
  const target = { uri: document.uri.toString(), kernel: "transpose" };
  const client = (await extension()).server.running;
  assert.ok(client);
  const sent: unknown[] = [];
  const send = client.sendRequest.bind(client) as (...given: unknown[]) => Promise<unknown>;
  Object.assign(client, { sendRequest: (...given: unknown[]) => (sent.push(given[1]), send(...given)) });
  await commands.executeCommand("warpwright.doctor");
  for (const command of ["optimize", "reduceMemory", "fix", "fixAll", "generate", "verify", "profile", "showSass", "propose"]) {
    // The refusal waits for an answer to its message.
    const told = new Promise((resolve) => setTimeout(resolve, 300));
    await Promise.race([commands.executeCommand(`warpwright.${command}`, target), told]);
  }
  const asked = sent.flatMap((each) => (each as { command?: string } | undefined)?.command ?? []);
  // The status item asks by itself for what is on this machine.
  assert.deepEqual(asked.filter((each) => each !== "warpwright.surroundings"), ["warpwright.doctor"]);
});

test("nothing was compiled in the background", () => {
  const cache = process.env["XDG_CACHE_HOME"];
  assert.ok(cache);
  const kept = join(cache, "warpwright");
  // The doctor puts the default model together there.
  assert.deepEqual(existsSync(kept) ? readdirSync(kept).filter((each) => each !== "models") : [], []);
  return Promise.resolve();
});
