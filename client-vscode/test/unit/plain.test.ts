/** Messages that quote what a file's author wrote. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { plain } from "../../src/plain";

test("what VS Code would make a link of stays text", () => {
  const link = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)/i; // as VS Code reads messages
  for (const target of ["command:workbench.action.quit", "COMMAND:a", "https://example.com", "file:///etc/passwd"]) {
    const hostile = `There is no kernel [Repair](${target}) here.`;
    assert.match(hostile, link);
    assert.doesNotMatch(plain(hostile), link);
  }
  assert.equal(plain("tile[x](1): a[i](j)"), "tile[x](1): a[i](j)");
});
