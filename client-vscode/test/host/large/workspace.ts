/** A workspace of two thousand CUDA files, one of them of 5 MB. */
import * as assert from "node:assert/strict";
import { finding, findings, hoverText, open, extension, test } from "../support";

test("one file among two thousand is analysed at once", async () => {
  const document = await open("transpose.cu");
  assert.equal((await extension()).status.state.kind, "running");
  const opened = Date.now();
  await finding(document, "bank-conflict");
  assert.ok(Date.now() - opened < 10_000);
});

test("a file of 5 MB is left alone, and the others go on", async () => {
  const huge = await open("huge.cu");
  assert.ok(huge.getText().length > 5_000_000);
  const document = await open("barrier.cu");
  await finding(document, "barrier-in-divergent-branch");
  assert.match(await hoverText(document, "held[127"), /held/);
  const said = findings(huge).map((each) => each.message);
  assert.deepEqual(said, ["This is not analysed: it is larger than 1 MB."]);
  assert.equal((await extension()).status.state.kind, "running");
});
