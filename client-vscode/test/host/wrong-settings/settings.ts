/** Settings of the wrong type: each is named, its default is used, and analysis goes on. */
import * as assert from "node:assert/strict";
import { workspace } from "vscode";
import { eventually, extension, finding, hoverText, open, test } from "../support";

test("findings are those of the defaults", async () => {
  const document = await open("transpose.cu");
  assert.equal((await extension()).status.state.kind, "running");
  await finding(document, "bank-conflict");
  assert.match(await hoverText(document, "tile[threadIdx.x]"), /bank/);
});

test("the user is told of each by its name", async () => {
  const client = (await extension()).server.running;
  assert.ok(client);
  const told: string[] = [];
  const heard = client.onNotification("window/showMessage", ({ message }: { message: string }) => {
    told.push(message);
  });
  await workspace.getConfiguration("warpwright").update("plan", 3);
  const message = await eventually(() => told[0], "a message");
  heard.dispose();
  for (const setting of ["arch", "block", "ignore", "compile", "optimizeSeconds", "plan"]) {
    assert.match(message, new RegExp(`warpwright\\.${setting}: must be [^;]*; the default is used`));
  }
});
