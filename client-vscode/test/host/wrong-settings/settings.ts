/** Settings of the wrong type: each is named, its default is used, and analysis goes on. */
import * as assert from "node:assert/strict";
import { finding, hoverText, open, extension, test } from "../support";

test("findings are those of the defaults", async () => {
  const document = await open("transpose.cu");
  assert.equal((await extension()).status.state.kind, "running");
  await finding(document, "bank-conflict");
  assert.match(await hoverText(document, "tile[threadIdx.x]"), /bank/);
});
