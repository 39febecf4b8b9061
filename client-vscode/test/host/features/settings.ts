/** Settings hold at once. */
import { workspace } from "vscode";
import { codeOf, eventually, finding, findings, open, test } from "../support";

test("a rule that is ignored marks nothing", async () => {
  const document = await open("transpose.cu");
  await finding(document, "bank-conflict");
  const settings = workspace.getConfiguration("warpwright");
  await settings.update("ignore", ["memory"]);
  const marked = () => findings(document).some((each) => codeOf(each) === "bank-conflict");
  await eventually(() => (marked() ? undefined : true), "no mark");
  await settings.update("ignore", undefined);
  await eventually(() => (marked() ? true : undefined), "the mark");
});
