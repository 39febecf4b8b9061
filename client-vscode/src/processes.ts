/** Programs that end by themselves, by a limit of time or by a cancel, with all that they started. */
import { spawn, spawnSync } from "node:child_process";

const MOST_CHARACTERS = 200_000;

export interface Command {
  readonly program: string;
  readonly arguments: readonly string[];
}

interface Limits {
  readonly milliseconds?: number;
  /** Aborted where the user cancels. */
  readonly signal?: AbortSignal | undefined;
  readonly folder?: string;
  readonly environment?: NodeJS.ProcessEnv;
  /** Hears each line of both streams as it comes. */
  readonly onLine?: (line: string) => void;
}

export interface Ended {
  /** The exit status; null where it was killed. */
  readonly status: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly why: "ended" | "late" | "cancelled" | "babbled";
}

/** Run a program to its end. Rejects with Node's error where it cannot be started. */
export function run(command: Command, limits: Limits = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command.program, command.arguments, {
      cwd: limits.folder,
      env: limits.environment ?? process.env,
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own, which is killed whole; on Windows that would open a console.
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    const said = { stdout: "", stderr: "" };
    let why: Ended["why"] = "ended";
    const end = (reason: Ended["why"]): void => {
      why = reason;
      killGroup(child.pid);
      // A grandchild that left the group would hold the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    for (const name of ["stdout", "stderr"] as const) {
      const lines = new Lines(limits.onLine ?? (() => undefined));
      child[name].setEncoding("utf8");
      child[name].on("data", (text: string) => {
        lines.take(text);
        said[name] += text;
        if (said[name].length > MOST_CHARACTERS) {
          said[name] = said[name].slice(-MOST_CHARACTERS / 2);
          if (limits.onLine === undefined) {
            end("babbled");
          }
        }
      });
      child[name].on("end", () => lines.end());
    }
    const timer = limits.milliseconds === undefined ? undefined : setTimeout(() => end("late"), limits.milliseconds);
    const cancel = (): void => end("cancelled");
    limits.signal?.addEventListener("abort", cancel);
    const settled = (): void => {
      clearTimeout(timer);
      limits.signal?.removeEventListener("abort", cancel);
    };
    child.on("error", (error) => {
      settled();
      reject(error);
    });
    child.on("close", (status, signal) => {
      settled();
      resolve({ status, signal, ...said, why });
    });
    if (limits.signal?.aborted) {
      cancel();
    }
  });
}

/** Text in pieces as lines; what `pip` rewrites in place by carriage returns counts as lines too. */
export class Lines {
  private rest = "";
  private readonly hear: (line: string) => void;

  constructor(hear: (line: string) => void) {
    this.hear = hear;
  }

  take(text: string): void {
    const lines = (this.rest + text).split(/[\r\n]+/);
    this.rest = lines.pop() ?? "";
    lines.filter(Boolean).forEach(this.hear);
  }

  end(): void {
    if (this.rest) {
      this.hear(this.rest);
    }
    this.rest = "";
  }
}

/** How a process is killed with all that it started: a command on Windows, elsewhere a signal to its group. */
export function windowsKill(pid: number): Command {
  return { program: "taskkill", arguments: ["/PID", String(pid), "/T", "/F"] };
}

/** Kill a process on Windows, with all that it started. */
export function killOnWindows(pid: number): void {
  const { program, arguments: given } = windowsKill(pid);
  spawnSync(program, given, { stdio: "ignore", windowsHide: true });
}

/** Kill a program that leads a group, and the group. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) {
    return;
  }
  if (process.platform === "win32") {
    killOnWindows(pid);
    return;
  }
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
