/** Commands on a kernel: what is found is shown as a diff, and changes nothing until its user says so. */
import * as assert from "node:assert/strict";
import { commands, Selection, TabInputTextDiff, Uri, window, workspace, type TextDocument } from "vscode";
import { actionsAt, eventually, finding, open, openText, skip, test, verifies } from "../support";

interface Result {
  readonly status: string;
  readonly message: string;
  readonly page?: string;
}

async function select(document: TextDocument, words: string): Promise<void> {
  const editor = await window.showTextDocument(document);
  const place = document.positionAt(document.getText().indexOf(words));
  editor.selection = new Selection(place, place);
}

/** The right side of the diff that is shown, with its title. */
async function shownDiff(): Promise<[TabInputTextDiff, string]> {
  return await eventually(() => {
    const tab = window.tabGroups.activeTabGroup.activeTab;
    return tab?.input instanceof TabInputTextDiff ? [tab.input, tab.label] : undefined;
  }, "a diff");
}

function kernel(name: string): string {
  return `__global__ void ${name}(const float* in, float* out) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = tile[x][y];
}

void run_${name}(const float* in, float* out) {
    ${name}<<<1, dim3(32, 32)>>>(in, out);
    if (cudaGetLastError() != cudaSuccess) return;
}
`;
}

test("optimize shows a diff with its badge; applied, one undo brings the text back", async () => {
  if (!(await verifies())) {
    skip("no compiler, or nothing to run a kernel on");
  }
  const before = kernel("first");
  const document = await openText("one.cu", before);
  await select(document, "tile[y]");
  const result = await commands.executeCommand<Result>("warpwright.optimize");
  assert.equal(result.status, "offered", result.message);
  const [diff, title] = await shownDiff();
  assert.equal(diff.original.toString(), document.uri.toString());
  assert.match(title, /^first: .+ \[(correct|faster|compiled)/);
  const after = (await workspace.openTextDocument(diff.modified)).getText();
  assert.notEqual(after, before);
  assert.equal(document.getText(), before, "nothing is changed yet");
  const applied = await commands.executeCommand<Result>("warpwright.applyPreview");
  assert.equal(applied.status, "applied", applied.message);
  assert.equal(document.getText(), after);
  await window.showTextDocument(document);
  await commands.executeCommand("undo");
  assert.equal(document.getText(), before);
});

test("all findings of a rule are fixed at once; discarded, the diff is gone and the text as it was", async () => {
  if (!(await verifies())) {
    skip("no compiler, or nothing to run a kernel on");
  }
  const two = kernel("first") + kernel("second");
  const document = await openText("two.cu", two);
  const actions = await actionsAt(document, await finding(document, "bank-conflict"));
  const action = actions.find((each) => each.title === "Fix all 2 findings of bank-conflict in this file");
  assert.ok(action?.command, actions.map((each) => each.title).join("; "));
  await commands.executeCommand(action.command.command, ...((action.command.arguments ?? []) as unknown[]));
  const [diff, title] = await shownDiff();
  assert.match(title, /^2 findings of bank-conflict fixed \[/);
  assert.equal((await workspace.openTextDocument(diff.modified)).getText().match(/\[32 \+ 1\]/g)?.length, 2);
  await commands.executeCommand("warpwright.discardPreview", diff.modified);
  const diffs = (): unknown[] => window.tabGroups.all.flatMap((each) => each.tabs.filter((tab) => tab.input instanceof TabInputTextDiff));
  await eventually(() => (diffs().length === 0 ? true : undefined), "no diff");
  assert.equal(document.getText(), two);
});

test("a command on what is no kernel says so and changes nothing", async () => {
  const document = await open("transpose.cu");
  await select(document, "#");
  const optimized = await commands.executeCommand<Result>("warpwright.optimize");
  assert.deepEqual([optimized.status, optimized.message], ["failed", "Put the cursor on a kernel first."]);
  const generated = await commands.executeCommand<Result>("warpwright.generate");
  assert.equal(generated.status, "failed");
  assert.match(generated.message, /Put the cursor on a comment/);
  await openText("notes.txt", "no CUDA");
  assert.equal(await commands.executeCommand("warpwright.optimize"), undefined);
});

test("explain shows the page of the rule at the cursor, without a network", async () => {
  const document = await open("transpose.cu");
  await finding(document, "bank-conflict");
  await select(document, "tile[threadIdx.x]");
  const result = await commands.executeCommand<Result>("warpwright.explainRule");
  assert.equal(result.status, "shown", result.message);
  const page = await workspace.fs.readFile(Uri.file(result.page ?? ""));
  assert.match(Buffer.from(page).toString(), /^# bank-conflict/);
  const shown = (): boolean => window.tabGroups.all.some((each) => each.tabs.some((tab) => /bank-conflict\.md/.test(tab.label)));
  await eventually(() => (shown() ? true : undefined), "the preview of the page");
  await commands.executeCommand("workbench.action.closeActiveEditor");
});
