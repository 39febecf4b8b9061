/** The command that lets the user select the Python that runs the server. */
import { join } from "node:path";
import { ConfigurationTarget, QuickPickItemKind, window, workspace, type QuickPickItem } from "vscode";
import type { Command } from "../processes";
import { chosenElsewhere } from "./elsewhere";
import { isEnvironment, liesIn, named, onThePath, pythonIn } from "./places";
import { usable, type Interpreter, type PythonFault } from "./probe";

interface Item extends QuickPickItem {
  readonly run?: () => Promise<unknown>;
}

/** Ask, and write the setting. `folders` hold the server's libraries, `ours` the environments that were created here. */
export async function selectInterpreter(
  folders: readonly string[],
  ours: readonly string[],
  create: () => Promise<unknown>,
): Promise<void> {
  const pick = window.createQuickPick<Item>();
  const first: Item[] = [
    { label: "$(add) Create an environment...", description: "with the model, the compiler or what runs kernels", run: create },
    { label: "$(folder) Browse...", description: "a Python, or the folder of an environment", run: browse },
    { label: "$(sparkle) Find one by itself", description: "chosen in the Python extension, else on the path", run: () => use("") },
    { label: "On this machine", kind: QuickPickItemKind.Separator },
  ];
  pick.title = "The Python that runs warpwright's server";
  pick.items = first;
  pick.busy = true;
  const accepted = new Promise<Item | undefined>((resolve) => {
    pick.onDidAccept(() => {
      resolve(pick.selectedItems[0]);
      pick.hide();
    });
    pick.onDidHide(() => resolve(undefined));
  });
  pick.show();
  const commands = [...(await candidates(ours)), ...onThePath()];
  const found = new Map<string, Item>();
  const looks = commands.map(async (command) => {
    const item = await itemOf(command, folders);
    if (item !== undefined && !found.has(item.label)) {
      found.set(item.label, item);
      pick.items = [...first, ...found.values()];
    }
  });
  void Promise.all(looks).then(() => (pick.busy = false));
  const chosen = await accepted;
  pick.dispose();
  await chosen?.run?.();
}

/** Write the setting where the one in force stands, else for the machine. The server is started anew by its change. */
export async function use(path: string): Promise<void> {
  const settings = workspace.getConfiguration("warpwright");
  const inWorkspace = settings.inspect("interpreter")?.workspaceValue !== undefined;
  await settings.update(
    "interpreter",
    path || undefined,
    inWorkspace ? ConfigurationTarget.Workspace : ConfigurationTarget.Global,
  );
}

async function candidates(ours: readonly string[]): Promise<Command[]> {
  const opened = (workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const chosen = await chosenElsewhere(workspace.workspaceFolders?.[0]?.uri);
  const environments = [...ours, ...opened.flatMap((folder) => [".venv", "venv", "env"].map((name) => join(folder, name)))];
  const paths = [...chosen, ...environments.filter(isEnvironment).map((folder) => pythonIn(folder))];
  return paths.filter((path) => workspace.isTrusted || !liesIn(path, opened)).map((path) => named(path, undefined));
}

async function itemOf(command: Command, folders: readonly string[]): Promise<Item | undefined> {
  try {
    const python: Interpreter = await usable(command, folders, "Python");
    return { label: python.path, description: `Python ${python.version}`, run: () => use(python.path) };
  } catch (error) {
    const fault = error as PythonFault;
    return fault.kind === "absent" ? undefined : { label: `$(warning) ${command.program}`, detail: `${fault.message}.` };
  }
}

async function browse(): Promise<void> {
  const chosen = await window.showOpenDialog({
    title: "A Python, or the folder of an environment",
    openLabel: "Select",
    canSelectFiles: true,
    canSelectFolders: true,
  });
  if (chosen?.[0] !== undefined) {
    await use(chosen[0].fsPath);
  }
}
