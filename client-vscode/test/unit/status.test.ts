/** What the status item says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { levelOf } from "../../src/launch";
import { textOf, tooltipOf, type Known, type Part } from "../../src/status_text";

const compiler: Part = { name: "compiler", found: true, what: "nvcc 13.0.88 (/usr/bin/nvcc)", gives: "fixes", advice: "" };
const gpu: Part = { name: "GPU", found: false, what: "nvidia-smi shows no GPU.", gives: "timing", advice: "Get one." };
const running: Known = { state: { kind: "running", python: "3.12.1" }, parts: [compiler, gpu], doing: [], trusted: true };

test("the item says in a word how it stands", () => {
  assert.equal(textOf(running), "$(check) warpwright");
  assert.equal(textOf({ ...running, doing: ["Optimizing", "Profiling"] }), "$(sync~spin) warpwright: Optimizing");
  assert.equal(textOf({ ...running, trusted: false }), "$(shield) warpwright: analysis only");
  assert.equal(textOf({ ...running, state: { kind: "starting" } }), "$(sync~spin) warpwright");
  assert.equal(textOf({ ...running, state: { kind: "stopped", reason: "No Python." } }), "$(error) warpwright");
});

test("its tooltip names what was found, what was not, and why it does not run", () => {
  const lines = ["**warpwright** runs with Python 3.12.1.", "", "- compiler: nvcc 13.0.88 (/usr/bin/nvcc)", "- GPU: none. nvidia-smi shows no GPU."];
  assert.equal(tooltipOf(running), lines.join("\n"));
  assert.match(tooltipOf({ ...running, trusted: false }), /not trusted: it is analysed, and nothing is compiled or run\./);
  assert.equal(tooltipOf({ ...running, state: { kind: "stopped", reason: "No Python." } }), "**warpwright** is not running: No Python.");
});

test("a path is shown as it is", () => {
  const model = { ...compiler, name: "model", what: "small (~/my_models/a*b.gguf)" };
  assert.match(tooltipOf({ ...running, parts: [model] }), /- model: small \(\\~\/my\\_models\/a\\\*b\.gguf\)$/);
});

test("a line of the server's log has the level that it names", () => {
  assert.equal(levelOf("WARNING warpwright.lsp.work: the worker's pipe broke"), "warn");
  assert.equal(levelOf("CRITICAL a: b"), "error");
  assert.equal(levelOf("Traceback (most recent call last):"), "error");
  assert.equal(levelOf("  File \"x.py\", line 3"), undefined);
});
