/** The menu of the status item: what can be done with the server, and what it found on this machine. */
import { commands, env, QuickPickItemKind, window, type QuickPickItem } from "vscode";
import type { ExtraName } from "./environment/extras";
import type { Status } from "./status";
import type { Part } from "./status_text";

interface Item extends QuickPickItem {
  readonly run?: () => unknown;
}

/** The extra that brings a part. */
const BROUGHT_BY: Readonly<Record<string, ExtraName>> = { compiler: "cuda", emulator: "emulator", model: "model" };

/** Show the menu at once; `refresh` brings the parts up to date meanwhile. */
export async function showMenu(status: Status, refresh: () => Promise<void>): Promise<void> {
  const pick = window.createQuickPick<Item>();
  const { state } = status;
  pick.title = state.kind === "running" ? `warpwright, Python ${state.python}` : `warpwright: ${state.kind}`;
  pick.items = itemsOf(status);
  pick.onDidAccept(() => {
    const chosen = pick.selectedItems[0];
    pick.hide();
    chosen?.run?.();
  });
  pick.onDidHide(() => pick.dispose());
  pick.show();
  if (state.kind === "running") {
    pick.busy = true;
    await refresh();
    pick.items = itemsOf(status);
    pick.busy = false;
  }
}

function itemsOf(status: Status): Item[] {
  const { state, parts } = status;
  const does = (label: string, command: string, ...given: unknown[]): Item => ({
    label,
    run: () => commands.executeCommand(command, ...given),
  });
  const items = [
    does("$(output) Show log", "warpwright.showOutput"),
    does("$(debug-restart) Restart server", "warpwright.restart"),
    does("$(list-selection) Select interpreter", "warpwright.selectInterpreter"),
    does("$(add) Create environment", "warpwright.createEnvironment"),
    does("$(gear) Settings", "workbench.action.openSettings", "warpwright"),
  ];
  if (state.kind === "stopped") {
    return [{ label: state.reason, description: "copy", run: () => env.clipboard.writeText(state.reason) }, ...items];
  }
  const heading = { label: "On this machine", kind: QuickPickItemKind.Separator };
  const whole = does("$(pulse) Full environment report", "warpwright.showDoctor");
  return parts.length > 0 ? [...items, heading, ...parts.map(itemOf), whole] : items;
}

function itemOf(part: Part): Item {
  if (part.found) {
    return { label: `$(check) ${part.name}`, description: part.what };
  }
  const extra = BROUGHT_BY[part.name];
  const missing = { label: `$(circle-slash) ${part.name}`, description: part.what };
  return extra === undefined || process.platform === "darwin"
    ? { ...missing, detail: `Without it: no ${part.gives}. ${part.advice}`, run: () => env.clipboard.writeText(part.advice) }
    : {
        ...missing,
        detail: `Without it: no ${part.gives}. Choose this to create an environment with it.`,
        run: () => commands.executeCommand("warpwright.createEnvironment", { extras: [extra] }),
      };
}
