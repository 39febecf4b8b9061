/** A page of the server as a webview shows it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { asWebview } from "../../src/views/theme";

const PAGE = `<!doctype html>
<html lang="en">
<head>
<title>k: results</title>
<style>p{color:red}</style>
</head>
<body>
<p>&lt;script&gt; and $& and </p>
<script>let a = 1;</script>
</body>
</html>
`;

test("nothing is loaded, and only what bears the nonce runs or styles", () => {
  const shown = asWebview(PAGE, "abc");
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(shown);
  assert.equal(policy?.[1], "default-src 'none'; style-src 'nonce-abc'; script-src 'nonce-abc'");
  assert.ok((policy?.index ?? Infinity) < shown.indexOf("<style"), "the policy stands before what it is about");
  assert.equal(shown.match(/<(style|script)\b/g)?.length, 4);
  assert.equal(shown.match(/<(style|script) nonce="abc">/g)?.length, 4);
});

test("the page's own text stays as it is", () => {
  const shown = asWebview(PAGE, "abc");
  assert.ok(shown.includes("<p>&lt;script&gt; and $& and </p>"));
  assert.ok(shown.includes('<script nonce="abc">let a = 1;</script>'));
});
