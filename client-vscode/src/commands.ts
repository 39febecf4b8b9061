/** The server's commands: on what they are run from the palette, with progress that can be cancelled, and what follows. */
import { randomUUID } from "node:crypto";
import { ProgressLocation, window, type TextEditor } from "vscode";
import {
  ExecuteCommandRequest,
  WorkDoneProgress,
  WorkDoneProgressCancelNotification,
  type ExecuteCommandParams,
  type LanguageClient,
} from "vscode-languageclient/node";
import { visibleEditor } from "./findings";
import { LANGUAGES } from "./languages";
import type { Offer, Previews } from "./views/previews";

/** A command about what the cursor is on. `title` is of its progress; `goal` is that of a search, which ends in a preview. */
interface Kind {
  readonly title?: string;
  readonly goal?: string;
}

const KINDS: Readonly<Record<string, Kind>> = {
  "warpwright.optimize": { title: "Optimizing", goal: "speed" },
  "warpwright.reduceMemory": { title: "Reducing memory", goal: "memory" },
  "warpwright.fix": { title: "Fixing", goal: "fix" },
  "warpwright.fixAll": { title: "Fixing all findings", goal: "fixAll" },
  "warpwright.generate": { title: "Writing a kernel", goal: "generate" },
  "warpwright.verify": { title: "Verifying" },
  "warpwright.profile": { title: "Profiling" },
  "warpwright.showSass": { title: "Disassembling" },
  "warpwright.wire": { title: "Wiring into PyTorch" },
  "warpwright.showResults": {},
  "warpwright.explainRule": {},
};

/** Those that compile or run what the opened folder holds. */
export const KERNEL_COMMANDS: readonly string[] = Object.keys(KINDS).filter((each) => KINDS[each]?.title !== undefined);

interface Result {
  readonly status: string;
  readonly offer?: Offer | null;
}

/** What a command of the server does meanwhile, such as "Optimizing"; undefined of one that is done at once. */
export function titleOf(command: string): string | undefined {
  return KINDS[command]?.title;
}

/**
 * Run a command of the server. One that is about a place and was given none gets the cursor's, or what is selected.
 * What a search finds is shown as a diff and not applied.
 */
export async function executeCommand(
  client: LanguageClient,
  previews: Previews,
  command: string,
  given: unknown[],
): Promise<unknown> {
  const kind = KINDS[command];
  if (kind === undefined) {
    return await client.sendRequest(ExecuteCommandRequest.type, { command, arguments: given });
  }
  const argument = isArgument(given[0]) ? given[0] : atCursor(client, visibleEditor());
  if (argument === undefined) {
    void window.showInformationMessage("Open a CUDA file first: this is about what the cursor is on.");
    return undefined;
  }
  const asked: ExecuteCommandParams =
    kind.goal === undefined
      ? { command, arguments: [argument] }
      : { command: "warpwright.propose", arguments: [{ ...argument, goal: kind.goal }] };
  const result = (await (kind.title === undefined
    ? client.sendRequest(ExecuteCommandRequest.type, asked)
    : withProgress(client, kind.title, asked))) as Result | null;
  if (result?.offer) {
    await previews.show(result.offer);
  } else if (command === "warpwright.profile" && result?.status === "profiled") {
    await client.sendRequest(ExecuteCommandRequest.type, { command: "warpwright.showResults", arguments: [argument] });
  }
  return result;
}

async function withProgress(client: LanguageClient, title: string, asked: ExecuteCommandParams): Promise<unknown> {
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
      return await client.sendRequest(ExecuteCommandRequest.type, { ...asked, workDoneToken });
    } finally {
      heard.dispose();
      stopped.dispose();
    }
  });
}

function isArgument(value: unknown): value is { uri: string } | { rule: string } {
  const { uri, rule } = (typeof value === "object" && value !== null ? value : {}) as { uri?: unknown; rule?: unknown };
  return typeof uri === "string" || typeof rule === "string";
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
