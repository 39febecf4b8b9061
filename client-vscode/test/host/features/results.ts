/** The page of a kernel's results: drawn under a strict policy, a click on a line shows the source. */
import * as assert from "node:assert/strict";
import { commands, TabInputWebview, Uri, window } from "vscode";
import { revealLine } from "../../../src/views/pages";
import { eventually, extension, has, open, skip, test } from "../support";

interface Result {
  readonly status: string;
  readonly message: string;
  readonly report: string;
}

test("a kernel that was not profiled has a page that says so", async () => {
  const document = await open("barrier.cu");
  const kernel = /__global__ void (\w+)/.exec(document.getText())?.[1];
  const target = { uri: document.uri.toString(), kernel };
  const result = await commands.executeCommand<Result>("warpwright.showResults", target);
  assert.equal(result.status, "shown", result.message);
  const { server } = await extension();
  assert.equal(await eventually(() => server.pages.drawn(Uri.file(result.report)), "the page's script"), 0);
});

test("a profile is drawn over its source", async () => {
  if (!((await has("compiler")) && (await has("emulator")))) {
    skip("no compiler, or no emulator");
  }
  const document = await open("transpose.cu");
  const target = { uri: document.uri.toString(), kernel: "transpose" };
  const result = await commands.executeCommand<Result>("warpwright.profile", target);
  assert.equal(result.status, "profiled", result.message);
  const { server } = await extension();
  const lines = await eventually(() => server.pages.drawn(Uri.file(result.report)), "the page's script");
  assert.equal(lines, document.lineCount - 1);
  const pages = window.tabGroups.all.flatMap((each) => each.tabs.filter((tab) => tab.input instanceof TabInputWebview));
  assert.ok(pages.some((tab) => tab.label === "transpose: results"), pages.map((tab) => tab.label).join("; "));
});

test("machine code is shown beside its source, in the editor", async () => {
  if (!(await has("compiler"))) {
    skip("no compiler");
  }
  const document = await open("barrier.cu");
  const target = { uri: document.uri.toString(), kernel: "halve" };
  const result = await commands.executeCommand<Result & { readonly page: string }>("warpwright.showSass", target);
  if (result.status === "failed" && /(cuobjdump|nvdisasm) was not found/.test(result.message)) {
    skip(result.message);
  }
  assert.equal(result.status, "shown", result.message);
  const { server } = await extension();
  const lines = await eventually(() => server.pages.drawn(Uri.file(result.page)), "the page's script");
  assert.equal(lines, document.lineCount - 1);
});

test("a line of a page leads to its source", async () => {
  const document = await open("transpose.cu");
  await revealLine(document.uri.fsPath, 3);
  assert.equal(window.activeTextEditor?.document.uri.toString(), document.uri.toString());
  assert.equal(window.activeTextEditor?.selection.active.line, 2);
  await commands.executeCommand("workbench.action.closeOtherEditors");
});
