/** Finding a Python that can run the server. */
import { delimiter } from "node:path";
import { window, workspace, type LogOutputChannel } from "vscode";
import { plain } from "./plain";
import { chosenElsewhere } from "./python/elsewhere";
import { liesIn, named, onThePath } from "./python/places";
import { OLDEST, PythonFault, usable, type Interpreter } from "./python/probe";

const SETTING = "interpreter";

/** Why no Python can be used, as sentences for the user. */
class NoInterpreterError extends Error {}

/**
 * The Python of the setting, else the one chosen in Microsoft's Python extensions, else the path's. `folders` hold the
 * server and its libraries. What the user named is not replaced by another where it cannot be used. In a folder that
 * its user does not trust, its own setting and the Pythons in it are left alone. Throws NoInterpreterError.
 */
export async function findInterpreter(
  folders: readonly string[],
  log: LogOutputChannel,
  signal?: AbortSignal,
): Promise<Interpreter> {
  const opened = (workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const setting = settingOf(log);
  if (setting) {
    try {
      return await usable(named(setting, opened[0]), folders, "The Python of the setting warpwright.interpreter", { signal });
    } catch (error) {
      const fault = error as PythonFault;
      throw new NoInterpreterError(`${fault.message}. ${fault.advice}`.trim());
    }
  }
  const untrusted = workspace.isTrusted ? [] : opened;
  const chosen = await chosenElsewhere(workspace.workspaceFolders?.[0]?.uri);
  const candidates = [...chosen.filter((path) => !liesIn(path, untrusted)).map((path) => named(path, undefined)), ...onThePath()];
  const faults: PythonFault[] = [];
  for (const candidate of candidates) {
    signal?.throwIfAborted();
    try {
      return await usable(candidate, folders, "Python", { signal, path: pathOutside(untrusted) });
    } catch (error) {
      const fault = error as PythonFault;
      log.debug(`${fault.message}.`);
      faults.push(fault);
    }
  }
  const told = faults.find((fault) => fault.kind === "broken") ?? faults.find((fault) => fault.kind === "old");
  const problem = told === undefined ? "No Python was found." : `${told.message}.`;
  throw new NoInterpreterError(
    `${problem} warpwright needs Python ${OLDEST.join(".")} or newer: install one, select one, or let an environment be created.`,
  );
}

const told = new Set<string>();

/** One of the wrong type is said to be, and left alone. */
function settingOf(log: LogOutputChannel): string {
  const settings = workspace.getConfiguration("warpwright");
  const value: unknown = workspace.isTrusted ? settings.get(SETTING) : settings.inspect(SETTING)?.globalValue;
  if (typeof value === "string" || value === undefined || value === null) {
    return value ?? "";
  }
  const wrong = `warpwright.interpreter: must be a path, not ${JSON.stringify(value)}; the default is used.`;
  if (!told.has(wrong)) {
    told.add(wrong);
    log.warn(wrong);
    void window.showWarningMessage(plain(wrong));
  }
  return "";
}

function pathOutside(folders: readonly string[]): string {
  const path = process.env["PATH"] ?? "";
  return path.split(delimiter).filter((each) => each && !liesIn(each, folders)).join(delimiter);
}
