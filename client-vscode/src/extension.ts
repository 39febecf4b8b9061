/** The extension's entry: it starts the server in the background and returns at once. */
import { commands, env, QuickPickItemKind, window, workspace, type ExtensionContext, type QuickPickItem } from "vscode";
import { Environments, type Choice } from "./environment/create";
import { serverFolders } from "./launch";
import { onChosenElsewhere } from "./python/elsewhere";
import { selectInterpreter } from "./python/select";
import { Server } from "./server";
import { Status } from "./status";

/** What tests of the extension see. */
export interface Api {
  readonly server: Server;
  readonly status: Status;
  readonly environments: Environments;
  /** Resolves when the first start has ended, well or not. */
  readonly started: Promise<void>;
}

let running: Server | undefined;

export function activate(context: ExtensionContext): Api {
  const log = window.createOutputChannel("warpwright", { log: true });
  const status = new Status();
  const server = (running = new Server(context, log, status));
  const environments = new Environments(context, log, server);
  context.subscriptions.push(
    log,
    status,
    server,
    commands.registerCommand("warpwright.restart", () => server.restartAsked()),
    environments,
    commands.registerCommand("warpwright.createEnvironment", (choice?: Partial<Choice>) => environments.create(choice)),
    commands.registerCommand("warpwright.selectInterpreter", () =>
      selectInterpreter(serverFolders(context.extensionPath), [environments.home], () => environments.create()),
    ),
    commands.registerCommand("warpwright.showOutput", () => log.show()),
    commands.registerCommand("warpwright.showMenu", () => showMenu(status)),
    workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("warpwright.interpreter")) {
        void server.restart();
      }
    }),
    workspace.onDidGrantWorkspaceTrust(() => void server.restart()),
  );
  const started = server.restart();
  // Those extensions are active once they were asked.
  void started.then(() => context.subscriptions.push(onChosenElsewhere(() => void server.follow())));
  return { server, status, environments, started };
}

/** The editor waits for this one: no process is left behind. */
export async function deactivate(): Promise<void> {
  await running?.stop();
}

interface Part {
  readonly name: string;
  readonly found: boolean;
  readonly what: string;
  readonly gives: string;
  readonly advice: string;
}

interface Item extends QuickPickItem {
  readonly run?: () => unknown;
}

/** What can be done with the server, and below it what it found on this machine. */
async function showMenu(status: Status): Promise<void> {
  const state = status.state;
  const title = state.kind === "running" ? `warpwright, Python ${state.python}` : `warpwright: ${state.kind}`;
  const items: Item[] = [
    { label: "$(output) Show output", run: () => commands.executeCommand("warpwright.showOutput") },
    { label: "$(debug-restart) Restart server", run: () => commands.executeCommand("warpwright.restart") },
    { label: "$(gear) Settings", run: () => commands.executeCommand("workbench.action.openSettings", "warpwright") },
  ];
  if (state.kind === "stopped") {
    items.unshift({ label: state.reason, description: "copy", run: () => env.clipboard.writeText(state.reason) });
  }
  const pick = window.createQuickPick<Item>();
  pick.title = title;
  pick.items = items;
  pick.onDidAccept(() => {
    pick.selectedItems[0]?.run?.();
    pick.hide();
  });
  pick.onDidHide(() => pick.dispose());
  pick.show();
  if (state.kind === "running") {
    pick.busy = true;
    try {
      const found = await commands.executeCommand<{ readonly parts: readonly Part[] }>("warpwright.doctor");
      const heading = { label: "On this machine", kind: QuickPickItemKind.Separator };
      pick.items = [...items, heading, ...found.parts.map(itemOf)];
    } finally {
      pick.busy = false;
    }
  }
}

function itemOf(part: Part): Item {
  return part.found
    ? { label: `$(check) ${part.name}`, description: part.what }
    : {
        label: `$(circle-slash) ${part.name}`,
        description: part.what,
        detail: `Without it: no ${part.gives}. ${part.advice}`,
        run: () => env.clipboard.writeText(part.advice),
      };
}
