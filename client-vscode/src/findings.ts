/** The way to a finding: a sample that has one, the next one of the open file with its hover or its fixes. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { commands, languages, Selection, ViewColumn, window, workspace, type TextDocument, type TextEditor } from "vscode";
import { LANGUAGES } from "./languages";

let sample: TextDocument | undefined;

/** Open a kernel with a finding beside what is open, in no file; the one that is open already, if it is. */
export async function openSample(extensionPath: string): Promise<void> {
  if (sample === undefined || sample.isClosed) {
    const content = await readFile(join(extensionPath, "media", "sample.cu"), "utf8");
    sample = await workspace.openTextDocument({ language: "cuda-cpp", content });
  }
  const shown = window.visibleTextEditors.find((editor) => editor.document === sample);
  await window.showTextDocument(sample, { viewColumn: shown?.viewColumn ?? ViewColumn.Beside, preview: false });
}

/** The CUDA file with the focus, else one that is visible: a link of the walkthrough takes the focus from it. */
export function visibleEditor(): TextEditor | undefined {
  const isCuda = (editor: TextEditor | undefined) => editor !== undefined && LANGUAGES.includes(editor.document.languageId);
  return [window.activeTextEditor, ...window.visibleTextEditors].find(isCuda);
}

/** Put the cursor on the next finding of the open file, and run a command of the editor there, such as its hover. */
export async function atNextFinding(extensionPath: string, command: string): Promise<void> {
  const editor = visibleEditor();
  if (editor === undefined) {
    const open = "Open sample";
    if ((await window.showInformationMessage("No CUDA file is open.", open)) === open) {
      await openSample(extensionPath);
    }
    return;
  }
  const { document, viewColumn } = editor;
  const starts = languages
    .getDiagnostics(document.uri)
    .filter((each) => each.source === "warpwright")
    .map((each) => each.range.start)
    .sort((one, other) => one.compareTo(other));
  const next = starts.find((start) => start.isAfter(editor.selection.active)) ?? starts[0];
  if (next === undefined) {
    void window.showInformationMessage("There is no finding in this file.");
    return;
  }
  await window.showTextDocument(document, { ...(viewColumn ? { viewColumn } : {}), selection: new Selection(next, next) });
  await commands.executeCommand(command);
}
