/** The extension's entry: it starts the server in the background and returns at once. */
import { commands, env, window, workspace, type ExtensionContext, type QuickPickItem } from "vscode";
import { Server } from "./server";
import { Status } from "./status";

/** What tests of the extension see. */
export interface Api {
  readonly server: Server;
  readonly status: Status;
  /** Resolves when the first start has ended, well or not. */
  readonly started: Promise<void>;
}

export function activate(context: ExtensionContext): Api {
  const log = window.createOutputChannel("warpwright", { log: true });
  const status = new Status();
  const server = new Server(context, log, status);
  context.subscriptions.push(
    log,
    status,
    server,
    commands.registerCommand("warpwright.restart", () => server.restart()),
    commands.registerCommand("warpwright.showOutput", () => log.show()),
    commands.registerCommand("warpwright.showMenu", () => showMenu(status)),
    workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("warpwright.interpreter")) {
        void server.restart();
      }
    }),
    workspace.onDidGrantWorkspaceTrust(() => void server.restart()),
  );
  return { server, status, started: server.restart() };
}

async function showMenu(status: Status): Promise<void> {
  const state = status.state;
  const items: (QuickPickItem & { readonly run: () => unknown })[] = [
    { label: "$(output) Show output", run: () => commands.executeCommand("warpwright.showOutput") },
    { label: "$(debug-restart) Restart server", run: () => commands.executeCommand("warpwright.restart") },
    { label: "$(gear) Settings", run: () => commands.executeCommand("workbench.action.openSettings", "warpwright") },
  ];
  if (state.kind === "stopped") {
    items.unshift({ label: "$(copy) Copy the reason", run: () => env.clipboard.writeText(state.reason) });
  }
  const title = state.kind === "running" ? `warpwright, Python ${state.python}` : `warpwright: ${state.kind}`;
  (await window.showQuickPick(items, { title }))?.run();
}
