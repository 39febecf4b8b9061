/** Finding a Python that can run the server. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { extensions, workspace, type Uri } from "vscode";

const run = promisify(execFile);

export const OLDEST = [3, 11] as const;
const ASK_MILLISECONDS = 15_000;

export interface Interpreter {
  readonly path: string;
  readonly version: string;
}

/** Why no Python can be used, as one sentence for the user. */
export class NoInterpreterError extends Error {}

/**
 * The Python of the setting, else the one chosen in the Python extension, else the path's.
 * What the user named is not replaced by another where it cannot be used. Throws NoInterpreterError.
 */
export async function findInterpreter(): Promise<Interpreter> {
  const named = workspace.isTrusted
    ? workspace.getConfiguration("warpwright").get<string>("interpreter", "")
    : workspace.getConfiguration("warpwright").inspect<string>("interpreter")?.globalValue ?? "";
  if (named) {
    return await usable(named, "The Python of the setting warpwright.interpreter");
  }
  const problems: string[] = [];
  for (const candidate of [await chosenInPythonExtension(), ...onThePath()]) {
    if (candidate === undefined) {
      continue;
    }
    try {
      return await usable(candidate, "Python");
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  const told = problems.find((problem) => problem.includes(" is Python ")) ?? "No Python was found.";
  throw new NoInterpreterError(
    `${told} warpwright needs Python ${OLDEST.join(".")} or newer: install it, or name one in the setting warpwright.interpreter.`,
  );
}

function onThePath(): string[] {
  return process.platform === "win32" ? ["python", "py"] : ["python3", "python"];
}

async function usable(path: string, what: string): Promise<Interpreter> {
  let said: string;
  try {
    const script = "import sys; print(*sys.version_info[:3], sys.executable, sep='\\n')";
    // Isolated, so that a sys.py or a site of the opened folder is not what is run.
    said = (await run(path, ["-I", "-c", script], { timeout: ASK_MILLISECONDS, windowsHide: true })).stdout;
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === "ENOENT" ? "is not there" : "does not run";
    throw new NoInterpreterError(`${what}, ${path}, ${reason}.`);
  }
  const [major = "0", minor = "0", patch = "0", executable = path] = said.trim().split(/\r?\n/);
  const version = `${major}.${minor}.${patch}`;
  if (Number(major) !== OLDEST[0] || Number(minor) < OLDEST[1]) {
    throw new NoInterpreterError(`${what}, ${path}, is Python ${version}.`);
  }
  return { path: executable, version };
}

interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath(resource?: Uri): { readonly path: string };
    resolveEnvironment(path: unknown): Promise<{ readonly executable: { readonly uri?: Uri } } | undefined>;
  };
}

/** What the user chose in the Python extension, where there is one; nothing here needs it. */
async function chosenInPythonExtension(): Promise<string | undefined> {
  const extension = extensions.getExtension<PythonExtension>("ms-python.python");
  if (extension === undefined) {
    return undefined;
  }
  try {
    const environments = (await extension.activate()).environments;
    const chosen = environments?.getActiveEnvironmentPath(workspace.workspaceFolders?.[0]?.uri);
    return (await environments?.resolveEnvironment(chosen))?.executable.uri?.fsPath;
  } catch {
    return undefined;
  }
}
