/** Code actions: those of the server that may be had here, and one that only the editor can do. */
import {
  CancellationTokenSource,
  CodeAction,
  CodeActionKind,
  ConfigurationTarget,
  ProgressLocation,
  window,
  workspace,
  type CancellationToken,
  type CodeActionContext,
  type Command,
  type TextDocument,
  type Uri,
} from "vscode";
import { plain } from "./plain";

const TURN_OFF = "warpwright.turnOffRule";
/** What runs nothing of the folder. */
const HARMLESS: ReadonlySet<string> = new Set(["warpwright.explainRule", TURN_OFF]);

/** What may be had in a folder that its user does not trust: a fix without its edit is verified, which runs the kernel. */
export function withoutRuns(offered: readonly (Command | CodeAction)[]): (Command | CodeAction)[] {
  return offered.filter((each) => {
    const command = typeof each.command === "string" ? each.command : each.command?.command;
    return command === undefined ? "edit" in each && each.edit !== undefined : HARMLESS.has(command);
  });
}

/** For each rule that found something here: turning it off in the settings. */
export function turnOffActions(document: TextDocument, context: CodeActionContext): CodeAction[] {
  if (context.only !== undefined && !context.only.contains(CodeActionKind.QuickFix)) {
    return [];
  }
  const found = context.diagnostics.filter((each) => each.source === "warpwright" && typeof each.code === "object");
  const rules = new Map(found.map((each) => [typeof each.code === "object" ? String(each.code.value) : "", each]));
  return [...rules].map(([rule, diagnostic]) => {
    const action = new CodeAction(`Turn ${rule} off in settings`, CodeActionKind.QuickFix);
    action.diagnostics = [diagnostic];
    action.command = { title: action.title, command: TURN_OFF, arguments: [rule, document.uri] };
    return action;
  });
}

/** Add a rule to the setting `ignore`, of the workspace where a file is in one. */
export async function turnOffRule(rule: string, resource: Uri): Promise<void> {
  const settings = workspace.getConfiguration("warpwright", resource);
  const inside = workspace.getWorkspaceFolder(resource) !== undefined;
  const told = settings.inspect<string[]>("ignore");
  const before = (inside ? told?.workspaceValue : told?.globalValue) ?? told?.globalValue ?? [];
  const target = inside ? ConfigurationTarget.Workspace : ConfigurationTarget.Global;
  try {
    await settings.update("ignore", [...new Set([...before, rule])], target);
  } catch (error) {
    void window.showWarningMessage(plain(`${rule} could not be turned off: ${error instanceof Error ? error.message : String(error)}`));
    return;
  }
  const project = inside && (await workspace.findFiles("**/{warpwright,pyproject}.toml", undefined, 1)).length > 0;
  const wins = project ? " A project's own settings, in warpwright.toml or pyproject.toml, hold over it." : "";
  void window.showInformationMessage(`${rule} is turned off in the settings of ${inside ? "this workspace" : "the user"}.${wins}`);
}

/** The edit of an action that is chosen, with a progress that stops its verification. */
export async function resolved<T extends CodeAction>(
  action: T,
  token: CancellationToken,
  resolve: (action: T, token: CancellationToken) => unknown,
): Promise<T | null | undefined> {
  if (action.command !== undefined) {
    return action; // It is done by the command, which has a progress of its own.
  }
  const title = `Verifying: ${action.title}`;
  const options = { location: ProgressLocation.Notification, title, cancellable: true };
  return await window.withProgress(options, async (_progress, cancelled) => {
    const either = new CancellationTokenSource();
    const heard = [token, cancelled].map((each) => each.onCancellationRequested(() => either.cancel()));
    try {
      return (await resolve(action, either.token)) as T | null | undefined;
    } finally {
      heard.forEach((each) => each.dispose());
      either.dispose();
    }
  });
}
