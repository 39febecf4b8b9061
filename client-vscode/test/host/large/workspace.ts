/** A workspace of two thousand CUDA files, one of them of 5 MB. */
import * as assert from "node:assert/strict";
import { eventually, finding, findings, hoverText, open, extension, test } from "../support";

test("one file among two thousand is analysed at once", async () => {
  const document = await open("transpose.cu");
  assert.equal((await extension()).status.state.kind, "running");
  await finding(document, "bank-conflict");
});

test("a file of 5 MB is left alone, which is said at its top, and the others go on", async () => {
  const huge = await open("huge.cu");
  assert.ok(huge.getText().length > 5_000_000);
  const said = await eventually(() => findings(huge)[0], "a word at its top");
  assert.match(said.message, /not analysed: it is larger than/);
  assert.equal(said.range.start.line, 0);
  const document = await open("barrier.cu");
  await finding(document, "barrier-in-divergent-branch");
  assert.match(await hoverText(document, "held[127"), /held/);
  assert.equal((await extension()).status.state.kind, "running");
});
