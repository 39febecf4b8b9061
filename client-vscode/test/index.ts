/** Tests inside the extension host, with the true `vscode` API and the real server. */
import * as assert from "node:assert/strict";
import { join } from "node:path";
import {
  commands,
  DiagnosticSeverity,
  extensions,
  languages,
  Position,
  Uri,
  window,
  workspace,
  type CodeLens,
  type Diagnostic,
  type Hover,
  type TextDocument,
} from "vscode";
import type { Api } from "../src/extension";

const SOON_MILLISECONDS = 30_000;
const tests: [string, () => Promise<void>][] = [];

function test(name: string, body: () => Promise<void>): void {
  tests.push([name, body]);
}

async function eventually<T>(look: () => T | undefined | Promise<T | undefined>, what: string): Promise<T> {
  const end = Date.now() + SOON_MILLISECONDS;
  for (;;) {
    const found = await look();
    if (found !== undefined) {
      return found;
    }
    if (Date.now() > end) {
      throw new Error(`${what}: not within ${SOON_MILLISECONDS / 1000} s`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function extension(): Api {
  const found = extensions.getExtension<Api>("warpwright.warpwright");
  assert.ok(found, "the extension is installed");
  assert.ok(found.isActive, "the extension is active");
  return found.exports;
}

async function open(name: string): Promise<TextDocument> {
  const folder = workspace.workspaceFolders?.[0];
  assert.ok(folder);
  const document = await workspace.openTextDocument(Uri.joinPath(folder.uri, name));
  await window.showTextDocument(document);
  return document;
}

function findings(document: TextDocument): Diagnostic[] {
  return languages.getDiagnostics(document.uri).filter((each) => each.source === "warpwright");
}

async function codesOf(document: TextDocument, wanted: string): Promise<Diagnostic> {
  return await eventually(
    () => findings(document).find((each) => typeof each.code === "object" && each.code.value === wanted),
    `the finding ${wanted}`,
  );
}

test("opening a CUDA file activates the extension and starts the server", async () => {
  await open("transpose.cu");
  await eventually(() => extensions.getExtension("warpwright.warpwright")?.isActive || undefined, "activation");
  await extension().started;
  assert.equal(extension().status.state.kind, "running");
});

test("a bank conflict is marked, with a code that leads to the rule's page", async () => {
  const document = await open("transpose.cu");
  const finding = await codesOf(document, "bank-conflict");
  assert.equal(finding.severity, DiagnosticSeverity.Warning);
  assert.match(document.getText(finding.range), /tile\[/);
  assert.ok(typeof finding.code === "object" && finding.code.target.toString().includes("bank-conflict"));
});

test("a hover shows the lanes' banks", async () => {
  const document = await open("transpose.cu");
  const finding = await codesOf(document, "bank-conflict");
  const hovers = await commands.executeCommand<Hover[]>("vscode.executeHoverProvider", document.uri, finding.range.start);
  const text = hovers.flatMap((each) => each.contents.map((part) => (typeof part === "string" ? part : part.value)));
  assert.match(text.join("\n"), /bank/);
});

test("lenses stand above the kernel", async () => {
  const document = await open("transpose.cu");
  const lenses = await eventually(async () => {
    const found = await commands.executeCommand<CodeLens[]>("vscode.executeCodeLensProvider", document.uri, 20);
    return found.some((each) => each.command?.command === "warpwright.optimize") ? found : undefined;
  }, "the lens Optimize");
  assert.ok(lenses.length >= 3);
});

test("optimize changes the kernel, and one undo brings it back", async () => {
  const document = await open("transpose.cu");
  const before = document.getText();
  const editor = window.activeTextEditor;
  assert.ok(editor);
  const place = document.positionAt(before.indexOf("tile["));
  editor.selection = new (await import("vscode")).Selection(place, place);
  const result = await commands.executeCommand<{ status: string; message: string }>("warpwright.optimize");
  assert.equal(result.status, "applied", result.message);
  assert.notEqual(document.getText(), before);
  await commands.executeCommand("undo");
  assert.equal(document.getText(), before);
});

test("the doctor names what was found and what was not", async () => {
  const result = await commands.executeCommand<{ parts: { name: string; found: boolean }[] }>("warpwright.doctor");
  const names = result.parts.map((part) => part.name);
  assert.ok(["warpwright", "analysis", "compiler", "emulator", "GPU"].every((name) => names.includes(name)), String(names));
  assert.ok(result.parts.find((part) => part.name === "analysis")?.found);
});

test("the server that is killed is started anew", async () => {
  const document = await open("transpose.cu");
  const client = extension().server.running;
  assert.ok(client);
  const process = (client as unknown as { _serverProcess?: { pid?: number; kill(): boolean } })._serverProcess;
  assert.ok(process?.pid, "the server's process");
  process.kill();
  await eventually(() => (extension().server.running === undefined ? true : undefined), "the end of the server");
  await eventually(() => extension().server.running, "the new server");
  const hovers = await eventually(async () => {
    const found = await commands.executeCommand<Hover[]>("vscode.executeHoverProvider", document.uri, new Position(20, 30));
    return Array.isArray(found) ? found : undefined;
  }, "an answer of the new server");
  assert.ok(hovers);
});

test("a Python that is not there is named, and the right one brings the server back", async () => {
  const settings = workspace.getConfiguration("warpwright");
  const good = settings.get<string>("interpreter");
  await settings.update("interpreter", join("nowhere", "python3"));
  const state = await eventually(() => {
    const shown = extension().status.state;
    return shown.kind === "stopped" ? shown : undefined;
  }, "the refusal");
  assert.match(state.reason, /nowhere.python3, is not there/);
  await settings.update("interpreter", good);
  await eventually(() => (extension().status.state.kind === "running" ? true : undefined), "the restart");
});

export async function run(): Promise<void> {
  let failed = 0;
  for (const [name, body] of tests) {
    const started = Date.now();
    try {
      await body();
      console.log(`ok      ${name} (${Date.now() - started} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
  }
  console.log(`${tests.length - failed} of ${tests.length} passed`);
  if (failed) {
    throw new Error(`${failed} failed`);
  }
}
