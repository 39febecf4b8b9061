/** The extension's entry: it starts the server in the background and returns at once. */
import { commands, window, workspace, type ExtensionContext } from "vscode";
import { turnOffRule } from "./actions";
import { Environments, type Choice } from "./environment/create";
import { atNextFinding, openSample } from "./findings";
import { serverFolders } from "./launch";
import { showMenu } from "./menu";
import { onChosenElsewhere } from "./python/elsewhere";
import { selectInterpreter } from "./python/select";
import { Server } from "./server";
import { Status } from "./status";
import { registerDoctor, surroundings } from "./surroundings";

/** What tests of the extension see. */
export interface Api {
  readonly server: Server;
  readonly status: Status;
  readonly environments: Environments;
  /** Resolves when the first start has ended, well or not. */
  readonly started: Promise<void>;
}

const LOOK_AGAIN_MILLISECONDS = 60_000;
/** After a start the processors are left to the first findings. */
const SETTLED_MILLISECONDS = 5_000;
let running: Server | undefined;

export function activate(context: ExtensionContext): Api {
  const log = window.createOutputChannel("warpwright", { log: true });
  const status = new Status();
  const server = (running = new Server(context, log, status));
  let looked = 0;
  const look = async (): Promise<void> => {
    looked = Date.now();
    const client = server.running;
    if (client !== undefined) {
      status.found(await surroundings(client));
    }
  };
  const chosen = onChosenElsewhere(() => void server.follow());
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
    commands.registerCommand("warpwright.turnOffRule", turnOffRule),
    commands.registerCommand("warpwright.showOutput", () => log.show()),
    commands.registerCommand("warpwright.openSample", () => openSample(context.extensionPath)),
    commands.registerCommand("warpwright.showFinding", () => atNextFinding(context.extensionPath, "editor.action.showHover")),
    commands.registerCommand("warpwright.showFixes", () => atNextFinding(context.extensionPath, "editor.action.quickFix")),
    commands.registerCommand("warpwright.showMenu", () => showMenu(status, look)),
    ...registerDoctor(),
    chosen,
    status.onDidChange(({ kind }) => {
      if (kind !== "starting") {
        chosen.listen();
        setTimeout(() => void look(), SETTLED_MILLISECONDS);
      }
    }),
    // A compiler or a driver may have been installed meanwhile.
    window.onDidChangeWindowState(({ focused }) => focused && Date.now() - looked > LOOK_AGAIN_MILLISECONDS && void look()),
    workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("warpwright.interpreter")) {
        void server.restart();
      } else if (change.affectsConfiguration("warpwright.model")) {
        void look();
      }
    }),
    workspace.onDidGrantWorkspaceTrust(() => void server.restart()),
  );
  return { server, status, environments, started: server.restart() };
}

/** The editor waits for this one: no process is left behind. */
export async function deactivate(): Promise<void> {
  await running?.stop();
}
