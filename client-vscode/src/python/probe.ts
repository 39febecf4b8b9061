/** Asking a program whether it is a Python that can run the server. */
import { existsSync, lstatSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { run, type Command, type Ended } from "../processes";

export const OLDEST: readonly [number, number] = [3, 11];
/** The newest whose compiled libraries the extension carries. */
export const NEWEST: readonly [number, number] = [3, 14];
const ASK_MILLISECONDS = 15_000;

export interface Interpreter {
  /** sys.executable: an absolute path. */
  readonly path: string;
  readonly version: string;
}

export type Kind = "absent" | "old" | "broken";

/** Why a Python cannot be used: one sentence without a full stop that begins with what it is, and what to do. */
export class PythonFault extends Error {
  readonly kind: Kind;
  readonly advice: string;

  constructor(kind: Kind, message: string, advice: string) {
    super(message);
    this.kind = kind;
    this.advice = advice;
  }
}

const MARK = "warpwright-python";

/** What shows that the server will run: tree-sitter's compiled modules load here. */
const LIBRARIES: readonly string[] = ["tree_sitter", "tree_sitter_cuda"];

/**
 * Written for every Python 3. Its arguments are the modules to import, with commas, and the folders where they may be.
 * The line begins with a mark, as a site may print lines of its own.
 */
const SCRIPT = `
import sys
said = ["${MARK}", "%d.%d.%d" % sys.version_info[:3], sys.executable or "", ""]
if sys.version_info[:2] >= (${OLDEST.join(", ")}):
    sys.path[1:1] = sys.argv[2:]
    try:
        import importlib
        for name in filter(None, sys.argv[1].split(",")):
            importlib.import_module(name)
    except Exception as error:
        import platform
        said[3] = "%s (%s)" % (str(error).splitlines()[0] if str(error) else type(error).__name__, platform.machine())
print("\\t".join(said))
`;

export interface Asked {
  readonly milliseconds?: number;
  /** The PATH on which a bare name is looked for. */
  readonly path?: string;
  /** The modules that it must be able to load. */
  readonly imports?: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/**
 * The Python that answers to `command`, where it can run the server with the libraries of `folders`. `what` is how the
 * user is told of it. Throws PythonFault.
 */
export async function usable(
  command: Command,
  folders: readonly string[],
  what: string,
  asked: Asked = {},
): Promise<Interpreter> {
  const { program } = command;
  const { milliseconds = ASK_MILLISECONDS, path = process.env["PATH"] ?? "", imports = LIBRARIES, signal } = asked;
  if (isFolder(program)) {
    throw new PythonFault("absent", `${what}, ${program}, is a folder without a Python`, "Name the program itself.");
  }
  let answer: Ended;
  try {
    // Isolated, so that a sys.py or a site of the opened folder is not what is run.
    const given = [...command.arguments, "-I", "-c", SCRIPT, imports.join(","), ...folders];
    answer = await run({ program, arguments: given }, { milliseconds, signal, environment: { ...process.env, PATH: path } });
  } catch (error) {
    throw notStarted(program, what, error as NodeJS.ErrnoException);
  }
  const line = answer.stdout.split(/\r?\n/).find((each) => each.startsWith(`${MARK}\t`));
  if (line === undefined) {
    throw notAnswered(program, what, answer, milliseconds);
  }
  const [, version = "", executable = "", lacking = ""] = line.split("\t");
  if (!isNewEnough(version)) {
    throw new PythonFault("old", `${what}, ${program}, is Python ${version}`, `${OLDEST.join(".")} or newer is needed.`);
  }
  if (lacking) {
    const message = `${what}, ${program}, is Python ${version} and cannot load the server's libraries: ${lacking}`;
    throw new PythonFault("broken", message, `They are for Python ${OLDEST.join(".")} to ${NEWEST.join(".")} of this machine's own kind.`);
  }
  return { path: executable || program, version };
}

/** Whether "3.12.1" can run the server. */
export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

function notStarted(program: string, what: string, error: NodeJS.ErrnoException): PythonFault {
  if (error.code === "ENOENT" || error.code === "ENOTDIR") {
    const base = baseOf(program);
    if (base !== undefined || isLink(program)) {
      return lostBase(program, what, base);
    }
    return new PythonFault("absent", `${what}, ${program}, is not there`, "");
  }
  if (error.code === "EACCES" || error.code === "EPERM") {
    return new PythonFault("broken", `${what}, ${program}, is not a program that may be run`, "");
  }
  return new PythonFault("broken", `${what}, ${program}, cannot be started (${error.code ?? error.message})`, "");
}

function notAnswered(program: string, what: string, answer: Ended, milliseconds: number): PythonFault {
  if (answer.why === "late") {
    return new PythonFault("broken", `${what}, ${program}, did not answer in ${milliseconds / 1000} seconds`, "");
  }
  const errors = answer.stderr.trim();
  if (/Unknown option: -I/.test(errors)) {
    return new PythonFault("old", `${what}, ${program}, is Python 2`, `${OLDEST.join(".")} or newer is needed.`);
  }
  if (/Microsoft Store/.test(errors + answer.stdout) || answer.status === 9009) {
    const message = `${what}, ${program}, is Windows' placeholder for a Python that is not installed`;
    return new PythonFault("absent", message, "");
  }
  if (/No Python at|did not find executable at/.test(errors)) {
    return lostBase(program, what, baseOf(program));
  }
  if (/init_fs_encoding|No module named '?(encodings|site|codecs)|failed to import the site/.test(errors)) {
    return new PythonFault("broken", `${what}, ${program}, has no standard library`, "Make its environment anew.");
  }
  if (answer.status === 0 || answer.why === "babbled") {
    const shown = firstLine(answer.stdout || errors);
    const message = `${what}, ${program}, does not answer as Python does${shown && `: it said "${shown}"`}`;
    return new PythonFault("broken", message, "");
  }
  const ended = answer.signal === null ? `status ${answer.status}` : `signal ${answer.signal}`;
  const reason = firstLine(errors.split(/\r?\n/).at(-1) ?? "");
  return new PythonFault("broken", `${what}, ${program}, does not run (${ended}${reason && `: ${reason}`})`, "");
}

function lostBase(program: string, what: string, base: string | undefined): PythonFault {
  const of = base === undefined ? "a link to a Python" : `of an environment that was made with the Python in ${base},`;
  return new PythonFault("broken", `${what}, ${program}, is ${of} that is gone`, "Make the environment anew.");
}

/** The folder of the Python that a virtual environment was made with; undefined where `program` is in none. */
function baseOf(program: string): string | undefined {
  try {
    const configured = readFileSync(join(dirname(dirname(program)), "pyvenv.cfg"), "utf8");
    return /^home\s*=\s*(.+?)\s*$/m.exec(configured)?.[1];
  } catch {
    return undefined;
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink() && !existsSync(path);
  } catch {
    return false;
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function firstLine(text: string): string {
  const found = text.split(/\r?\n/).find((each) => each.trim()) ?? "";
  const line = found.replace(/[\u0000-\u001f\u007f-\u009f\ufffd]+/g, " ").trim();
  return line.length <= 80 ? line : `${line.slice(0, 77)}...`;
}
