/** Advice of the server that can be followed from the editor. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { advised } from "../../src/advice";

test("what pip would install is offered as an environment", () => {
  const said = "NVIDIA's compiler nvcc was not found on this machine. Install it with `pip install 'warpwright[cuda]'`, or set WARPWRIGHT_NVCC to the path of nvcc.";
  assert.deepEqual(advised(said), {
    message: "NVIDIA's compiler nvcc was not found on this machine. Install it with *Create Environment*, or set WARPWRIGHT_NVCC to the path of nvcc.",
    extras: ["cuda"],
  });
  assert.deepEqual(advised("`pip install 'warpwright[model,emulator]'`").extras, ["emulator", "model"]);
});

test("other messages are shown as they are", () => {
  for (const said of ["transpose was verified.", "`pip install 'warpwright[upskill]'`", "`pip install torch`"]) {
    assert.deepEqual(advised(said), { message: said, extras: [] });
  }
});
