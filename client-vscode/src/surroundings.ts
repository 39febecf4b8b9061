/** What the server finds on this machine: for the status item, and as a page. */
import { commands, EventEmitter, ProgressLocation, Uri, window, workspace, type Disposable } from "vscode";
import { ExecuteCommandRequest, type LanguageClient } from "vscode-languageclient/node";
import type { Part } from "./status_text";

const SCHEME = "warpwright-doctor";
const PAGE = Uri.from({ scheme: SCHEME, path: "/On this machine.md" });

/** The parts that the status shows; nothing where the server cannot be asked. */
export async function surroundings(client: LanguageClient): Promise<readonly Part[]> {
  const model = workspace.getConfiguration("warpwright").get<unknown>("model");
  const asked = { command: "warpwright.surroundings", arguments: [{ model }] };
  try {
    const answer = (await client.sendRequest(ExecuteCommandRequest.type, asked)) as { readonly parts?: readonly Part[] } | null;
    return answer?.parts ?? [];
  } catch {
    return [];
  }
}

/** The command that shows all that the doctor found, as Markdown. */
export function registerDoctor(): Disposable[] {
  let page = "";
  const changed = new EventEmitter<Uri>();
  const show = async (): Promise<void> => {
    const looking = { location: ProgressLocation.Window, title: "warpwright: looking at this machine" };
    const found = await window.withProgress(looking, () =>
      commands.executeCommand<{ readonly message: string; readonly page?: string } | undefined>("warpwright.doctor"),
    );
    if (found?.page === undefined) {
      void window.showWarningMessage(found?.message ?? "warpwright is not running, and cannot look at this machine.");
      return;
    }
    page = found.page;
    changed.fire(PAGE);
    await commands.executeCommand("markdown.showPreview", PAGE);
  };
  return [
    changed,
    workspace.registerTextDocumentContentProvider(SCHEME, { onDidChange: changed.event, provideTextDocumentContent: () => page }),
    commands.registerCommand("warpwright.showDoctor", show),
  ];
}
