/** Quick fixes: made and verified when they are chosen. */
import * as assert from "node:assert/strict";
import { commands, workspace, type CodeAction } from "vscode";
import { actionsAt, codeOf, eventually, finding, findings, open, skip, test, verifies } from "../support";

test("a finding offers its fix and its silencing", async () => {
  const document = await open("transpose.cu");
  const titles = (await actionsAt(document, await finding(document, "bank-conflict"))).map((each) => each.title);
  assert.ok(titles.some((title) => title.startsWith("Pad the rows of tile")), String(titles));
  assert.ok(titles.includes("Suppress bank-conflict on this line"), String(titles));
});

test("silencing a finding takes its mark away", async () => {
  const document = await open("transpose.cu");
  const actions = await actionsAt(document, await finding(document, "bank-conflict"));
  await apply(actions.find((each) => each.title.startsWith("Suppress bank-conflict")));
  assert.match(document.getText(), /warpwright: ignore\[bank-conflict\]/);
  const marked = () => findings(document).some((each) => codeOf(each) === "bank-conflict");
  await eventually(() => (marked() ? undefined : true), "no mark");
  await commands.executeCommand("workbench.action.files.revert");
});

test("a rule is turned off in the settings of the workspace", async () => {
  const document = await open("transpose.cu");
  const actions = await actionsAt(document, await finding(document, "bank-conflict"));
  const command = actions.find((each) => each.title === "Turn bank-conflict off in settings")?.command;
  assert.ok(command);
  await commands.executeCommand(command.command, ...((command.arguments ?? []) as unknown[]));
  const settings = (): unknown => workspace.getConfiguration("warpwright").inspect("ignore")?.workspaceValue;
  assert.deepEqual(settings(), ["bank-conflict"]);
  const marked = (): boolean => findings(document).some((each) => codeOf(each) === "bank-conflict");
  await eventually(() => (marked() ? undefined : true), "no mark");
  await workspace.getConfiguration("warpwright").update("ignore", undefined);
  await finding(document, "bank-conflict");
});

test("a fix is verified when it is chosen, and cures what it was offered for", async () => {
  if (!(await verifies())) {
    skip("no compiler, or nothing to run a kernel on");
  }
  const document = await open("transpose.cu");
  const actions = await actionsAt(document, await finding(document, "bank-conflict"), 1);
  await apply(actions.find((each) => each.title.startsWith("Pad the rows of tile")));
  assert.match(document.getText(), /tile\[TILE\]\[TILE \+ 1\]/);
  const marked = () => findings(document).some((each) => codeOf(each) === "bank-conflict");
  await eventually(() => (marked() ? undefined : true), "no mark");
  await commands.executeCommand("workbench.action.files.revert");
});

async function apply(action: CodeAction | undefined): Promise<void> {
  assert.ok(action?.edit, `${action?.title ?? "the action"} has an edit`);
  assert.ok(await workspace.applyEdit(action.edit));
}
