/** The server's process: where its code is, how it is started, heard and ended. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { LogOutputChannel } from "vscode";
import { killOnWindows, Lines } from "./processes";
import type { Interpreter } from "./python/probe";

const END_MILLISECONDS = 1_000;

/** What is put before a Python's own libraries: the server and what it needs, as they come with the extension. */
export function serverFolders(extension: string): string[] {
  const bundled = join(extension, "bundled");
  const ours = existsSync(bundled) ? [join(bundled, "server"), join(bundled, "libs")] : [];
  return [...ours, ...(process.env["PYTHONPATH"] ?? "").split(delimiter).filter(Boolean)];
}

export interface Launched {
  readonly process: ChildProcess;
  /** Its last lines on stderr. */
  readonly lastWords: () => string;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
}

/**
 * Start a server on stdio, in the first of the `opened` folders; `trusted` are those of them that the user trusts. What it
 * writes to stderr goes to the log. Rejects where it cannot be started.
 */
export async function launch(
  python: Interpreter,
  folders: readonly string[],
  opened: readonly string[],
  trusted: readonly string[],
  log: LogOutputChannel,
): Promise<Launched> {
  const folder = opened[0];
  // Where a PYTHONHOME is set, it is that of another Python than the one that was asked in isolation.
  const { PYTHONHOME: _other, ...inherited } = process.env;
  const child = spawn(python.path, ["-P", "-m", "warpwright.lsp"], {
    cwd: folder !== undefined && existsSync(folder) ? folder : undefined,
    env: {
      ...inherited,
      PYTHONPATH: folders.join(delimiter),
      PYTHONUTF8: "1",
      WARPWRIGHT_TRUSTED_FOLDERS: trusted.join(delimiter),
    },
    stdio: "pipe",
    windowsHide: true,
  });
  const words: string[] = [];
  let level: Level = "info";
  const lines = new Lines((line) => {
    level = levelOf(line) ?? level;
    log[level](line);
    words.push(line);
    words.splice(0, words.length - 5);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => lines.take(text));
  child.stderr.on("end", () => lines.end());
  // Writing to a server that died is not an error of ours; its end is heard.
  child.stdin.on("error", () => undefined);
  const ended = new Promise<void>((resolve) => {
    child.once("exit", (status, signal) => {
      log.info(`the server's process ${child.pid} ended (${signal === null ? `status ${status}` : `signal ${signal}`})`);
      resolve();
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  return { process: child, lastWords: () => words.at(-1) ?? "", ended };
}

/** Kill a server that does not end by itself, now that it was told to. */
export async function endOrKill(server: Launched, log: LogOutputChannel): Promise<void> {
  const late = new Promise<"late">((resolve) => setTimeout(resolve, END_MILLISECONDS, "late").unref());
  if ((await Promise.race([server.ended, late])) === "late") {
    log.warn("the server did not end when it was told to; it is killed");
    const pid = server.process.pid;
    if (process.platform === "win32" && pid !== undefined) {
      killOnWindows(pid);
    } else {
      server.process.kill("SIGKILL");
    }
  }
}

type Level = "debug" | "info" | "warn" | "error";

const LEVELS: Readonly<Record<string, Level>> = {
  DEBUG: "debug",
  INFO: "info",
  WARNING: "warn",
  ERROR: "error",
  CRITICAL: "error",
  Traceback: "error",
};

/** The level of a line of the server's log, such as "WARNING warpwright.lsp: ..."; undefined of one that goes on. */
export function levelOf(line: string): Level | undefined {
  return LEVELS[/^\w+/.exec(line)?.[0] ?? ""];
}
