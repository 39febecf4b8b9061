/** What tests inside the extension host share: how they are named and run, and what they look at. */
import * as assert from "node:assert/strict";
import {
  commands,
  extensions,
  languages,
  Uri,
  window,
  workspace,
  type CodeAction,
  type Diagnostic,
  type Hover,
  type TextDocument,
} from "vscode";
import type { Api } from "../../src/extension";

const SOON_MILLISECONDS = 90_000;
const MOST_MILLISECONDS = 240_000;
const tests: [string, () => Promise<void>][] = [];

class Skipped extends Error {}

/** Name a test. Those of one run share a window and follow each other; each leaves the workspace as it was. */
export function test(name: string, body: () => Promise<void>): void {
  tests.push([name, body]);
}

/** Leave a test out, for want of something that this machine does not have. */
export function skip(reason: string): never {
  throw new Skipped(reason);
}

/** What `look` finds, as soon as it finds something. */
export async function eventually<T>(look: () => T | undefined | Promise<T | undefined>, what: string): Promise<T> {
  const end = Date.now() + SOON_MILLISECONDS;
  for (;;) {
    const found = await look();
    if (found !== undefined) {
      return found;
    }
    if (Date.now() > end) {
      throw new Error(`${what}: not within ${SOON_MILLISECONDS / 1000} s`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The extension, active and with its first start behind it. */
export async function extension(): Promise<Api> {
  const found = extensions.getExtension<Api>("warpwright.warpwright");
  assert.ok(found, "the extension is installed");
  const api = await found.activate();
  await api.started;
  return api;
}

export function inWorkspace(name: string): Uri {
  const folder = workspace.workspaceFolders?.[0];
  assert.ok(folder, "a folder is open");
  return Uri.joinPath(folder.uri, name);
}

export async function open(name: string): Promise<TextDocument> {
  const document = await workspace.openTextDocument(inWorkspace(name));
  await window.showTextDocument(document);
  return document;
}

/** Open a file of the workspace that holds this text. */
export async function openText(name: string, text: string): Promise<TextDocument> {
  await workspace.fs.writeFile(inWorkspace(name), Buffer.from(text));
  return await open(name);
}

export function findings(document: TextDocument): Diagnostic[] {
  return languages.getDiagnostics(document.uri).filter((each) => each.source === "warpwright");
}

export function codeOf(finding: Diagnostic): string {
  return typeof finding.code === "object" ? String(finding.code.value) : String(finding.code);
}

/** The first finding of a rule, once it is there. */
export async function finding(document: TextDocument, rule: string): Promise<Diagnostic> {
  return await eventually(() => findings(document).find((each) => codeOf(each) === rule), `the finding ${rule}`);
}

export async function hoverText(document: TextDocument, words: string): Promise<string> {
  const at = document.positionAt(document.getText().indexOf(words));
  const hovers = await commands.executeCommand<Hover[]>("vscode.executeHoverProvider", document.uri, at);
  const parts = hovers.flatMap((each) => each.contents);
  return parts.map((part) => (typeof part === "string" ? part : part.value)).join("\n");
}

/** The actions at a finding; the edits of those that are made late are asked for, for the first `resolved`. */
export async function actionsAt(document: TextDocument, at: Diagnostic, resolved = 0): Promise<CodeAction[]> {
  const ask = "vscode.executeCodeActionProvider";
  return await commands.executeCommand<CodeAction[]>(ask, document.uri, at.range, undefined, resolved);
}

/** Whether the server found a part of its surroundings, such as the compiler, on this machine. */
export async function has(part: string): Promise<boolean> {
  await extension();
  const doctor = await commands.executeCommand<{ parts: { name: string; found: boolean }[] }>("warpwright.doctor");
  return doctor.parts.some((each) => each.name === part && each.found);
}

/** Whether a verification can be made here: it compiles, and runs on a GPU or in the emulator. */
export async function verifies(): Promise<boolean> {
  return (await has("compiler")) && ((await has("emulator")) || (await has("GPU")));
}

/** Run every test that was named, one after the other; the host calls this. */
export async function run(): Promise<void> {
  let failed = 0;
  for (const [name, body] of tests) {
    const started = Date.now();
    try {
      await within(MOST_MILLISECONDS, body());
      console.log(`ok ${name} (${Date.now() - started} ms)`);
    } catch (error) {
      if (error instanceof Skipped) {
        console.log(`skipped ${name}: ${error.message}`);
        continue;
      }
      failed += 1;
      console.log(`FAILED ${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
  }
  if (failed) {
    throw new Error(`${failed} of ${tests.length} failed`);
  }
}

async function within(milliseconds: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${milliseconds / 1000} s`)), milliseconds);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
