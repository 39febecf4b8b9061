/** A server that ends by itself: it is started anew, up to five times in three minutes. */
import * as assert from "node:assert/strict";
import { commands } from "vscode";
import type { Api } from "../../../src/extension";
import { eventually, extension, finding, hoverText, open, test } from "../support";

test("the server that is killed is started anew", async () => {
  const document = await open("transpose.cu");
  const api = await extension();
  await kill(api);
  await eventually(() => api.server.running, "the new server");
  await finding(document, "bank-conflict");
  assert.match(await hoverText(document, "tile[threadIdx.x]"), /bank/);
});

test("a server that ends six times is left alone, which is said, until the user restarts it", async () => {
  const document = await open("transpose.cu");
  const api = await extension();
  for (let death = 2; death <= 6; death += 1) {
    await eventually(() => api.server.running, `the start after death ${death - 1}`);
    await kill(api);
  }
  const { status } = api;
  const state = await eventually(() => (status.state.kind === "stopped" ? status.state : undefined), "the end");
  assert.match(state.reason, /ended 6 times/);
  assert.equal(api.server.running, undefined);
  await commands.executeCommand("warpwright.restart");
  assert.equal(status.state.kind, "running");
  await finding(document, "bank-conflict");
});

async function kill(api: Api): Promise<void> {
  const client = api.server.running;
  const { pid } = api.server;
  assert.ok(client && pid, "the server's process");
  process.kill(pid, "SIGKILL");
  await eventually(() => (client.isRunning() ? undefined : true), "the end of the server");
}
