/** What one new window waits for, as asked.json in its workspace says. */
import * as assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { commands, extensions, languages, Position, Uri, window, workspace, type Hover, type TextDocument } from "vscode";
import { eventually, extension, inWorkspace } from "../host/support";

/** A window that has just come up is busy with itself; a person opens a file later. */
const SETTLED_MILLISECONDS = 3_000;

interface Asked {
  readonly file: string;
  readonly measure: "activation" | "opened" | "project";
  readonly hovers?: number;
}

export async function run(): Promise<void> {
  try {
    const bytes = await workspace.fs.readFile(inWorkspace("asked.json"));
    const asked = JSON.parse(Buffer.from(bytes).toString()) as Asked;
    const here = extensions.getExtension("warpwright.warpwright");
    assert.ok(here && (asked.measure === "project" || !here.isActive), "the extension is installed and not active yet");
    await new Promise((resolve) => setTimeout(resolve, SETTLED_MILLISECONDS));
    if (asked.measure === "project") {
      await extension(); // a folder with CUDA files starts the server
    }
    const measured = asked.measure === "activation" ? { activation: [await activation()] } : await opened(asked);
    console.log(`measured ${JSON.stringify(measured)}`);
  } catch (error) {
    console.log(`FAILED ${String(error)}`);
    throw error;
  }
}

async function activation(): Promise<number> {
  const start = performance.now();
  await extensions.getExtension("warpwright.warpwright")?.activate();
  const taken = performance.now() - start;
  await extension();
  return taken;
}

async function opened({ file, measure, hovers = 0 }: Asked): Promise<Record<string, number[]>> {
  const start = performance.now();
  const document = await workspace.openTextDocument(Uri.file(file));
  await window.showTextDocument(document);
  const shown = performance.now() - start;
  const found = () => languages.getDiagnostics(document.uri).some((each) => each.source === "warpwright") || undefined;
  await eventually(found, "findings");
  const taken = performance.now() - start;
  return { [measure]: [taken], shown: [shown], hover: await hoverTimes(document, hovers) };
}

/** Milliseconds of so many hovers on indices all over the file; those that show nothing do not count. */
async function hoverTimes(document: TextDocument, wanted: number): Promise<number[]> {
  const places = [...document.getText().matchAll(/\w\[/g)].map((each) => document.positionAt(each.index));
  const times: number[] = [];
  for (let asked = 0; times.length < wanted && asked < 5 * wanted; asked += 1) {
    const at = places[asked % places.length] ?? new Position(0, 0);
    const start = performance.now();
    const shown = await commands.executeCommand<Hover[]>("vscode.executeHoverProvider", document.uri, at);
    if (shown.length > 0) {
      times.push(performance.now() - start);
    }
  }
  return times;
}
