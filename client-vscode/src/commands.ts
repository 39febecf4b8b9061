/** The server's commands on a kernel: where they are run from the palette, and progress that can be cancelled. */
import { randomUUID } from "node:crypto";
import { ProgressLocation, window, type TextEditor } from "vscode";
import {
  ExecuteCommandRequest,
  WorkDoneProgress,
  WorkDoneProgressCancelNotification,
  type LanguageClient,
} from "vscode-languageclient/node";
import { LANGUAGES } from "./languages";

const TITLES: Readonly<Record<string, string>> = {
  "warpwright.optimize": "Optimizing",
  "warpwright.reduceMemory": "Reducing memory",
  "warpwright.fix": "Fixing",
  "warpwright.verify": "Verifying",
  "warpwright.profile": "Profiling",
  "warpwright.showSass": "Disassembling",
};

export const KERNEL_COMMANDS: readonly string[] = Object.keys(TITLES);

/** What a command of the server does meanwhile, such as "Optimizing"; undefined of one that is done at once. */
export function titleOf(command: string): string | undefined {
  return TITLES[command];
}

/**
 * Run a command of the server. One that works on a kernel and was given none gets the one at the cursor, or
 * what is selected of it.
 */
export async function executeCommand(client: LanguageClient, command: string, given: unknown[]): Promise<unknown> {
  const title = TITLES[command];
  if (title === undefined) {
    return await client.sendRequest(ExecuteCommandRequest.type, { command, arguments: given });
  }
  const argument = isTarget(given[0]) ? given[0] : atCursor(client, window.activeTextEditor);
  if (argument === undefined) {
    void window.showInformationMessage("Open a CUDA file and put the cursor on a kernel first.");
    return undefined;
  }
  const location = ProgressLocation.Notification;
  return await window.withProgress({ location, title, cancellable: true }, async (progress, cancelled) => {
    const workDoneToken = randomUUID();
    let done = 0;
    const heard = client.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
      if (value.kind === "end") {
        return;
      }
      const reached = value.percentage ?? done;
      const message = value.message ?? (value.kind === "begin" ? value.title : "");
      progress.report({ message, increment: Math.max(0, reached - done) });
      done = Math.max(done, reached);
    });
    const stopped = cancelled.onCancellationRequested(() => {
      void client.sendNotification(WorkDoneProgressCancelNotification.type, { token: workDoneToken });
    });
    try {
      return await client.sendRequest(ExecuteCommandRequest.type, { command, arguments: [argument], workDoneToken });
    } finally {
      heard.dispose();
      stopped.dispose();
    }
  });
}

function isTarget(value: unknown): value is { uri: string } {
  return typeof value === "object" && value !== null && typeof (value as { uri?: unknown }).uri === "string";
}

function atCursor(client: LanguageClient, editor: TextEditor | undefined): object | undefined {
  if (editor === undefined || !LANGUAGES.includes(editor.document.languageId)) {
    return undefined;
  }
  const converter = client.code2ProtocolConverter;
  return {
    uri: converter.asUri(editor.document.uri),
    position: converter.asPosition(editor.selection.active),
    ...(editor.selection.isEmpty ? {} : { range: converter.asRange(editor.selection) }),
  };
}
