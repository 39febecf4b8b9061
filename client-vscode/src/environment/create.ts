/** The command that creates an environment: what is asked, the progress that is shown, and its use afterwards. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { ProgressLocation, window, workspace, type ExtensionContext, type LogOutputChannel, type QuickPickItem } from "vscode";
import { filled, isEnvironment, liesIn, onThePath } from "../python/places";
import { OLDEST, PythonFault, usable, type Interpreter } from "../python/probe";
import { use } from "../python/select";
import { EXTRAS, offered, weighs, type ExtraName } from "./extras";
import { CancelledError, EnvironmentError, makeEnvironment } from "./make";

/** What is created. Where the caller of the command gives none, the user is asked. */
export interface Choice {
  readonly extras: readonly ExtraName[];
  readonly folder: string;
  readonly afresh?: boolean;
}

export type Outcome = { readonly status: "created"; readonly python: string } | { readonly status: "cancelled" | "failed" };

interface Running {
  readonly python: Interpreter | undefined;
  stop(): Promise<void>;
  restartAsked(): Promise<void>;
}

export class Environments {
  private under: AbortController | undefined;

  constructor(
    private readonly context: ExtensionContext,
    private readonly log: LogOutputChannel,
    private readonly server: Running,
  ) {}

  /** Where environments are put that the user gives no other place; it outlives versions of the extension. */
  get home(): string {
    return join(this.context.globalStorageUri.fsPath, "environment");
  }

  /** Ask what is wanted, beginning with `preselected`, or make what is given; then have the server use it. */
  async create(given?: Partial<Choice>): Promise<Outcome> {
    if (this.under !== undefined) {
      void window.showInformationMessage("An environment is being created already.");
      return { status: "cancelled" };
    }
    const under = (this.under = new AbortController());
    try {
      const choice = given?.folder !== undefined ? { extras: [], ...given, folder: given.folder } : await this.ask(given?.extras);
      return choice === undefined ? { status: "cancelled" } : await this.make(choice, under);
    } finally {
      this.under = undefined;
    }
  }

  /** End what is under way. */
  dispose(): void {
    this.under?.abort();
  }

  private async make(choice: Choice, under: AbortController): Promise<Outcome> {
    const same = liesIn(this.server.python?.path ?? "", [choice.folder]);
    for (;;) {
      try {
        if (same && (choice.afresh || process.platform === "win32")) {
          await this.server.stop(); // It holds files that are replaced.
        }
        const python = await this.shown(choice, under);
        await use(python);
        if (same) {
          await this.server.restartAsked();
        }
        const labels = EXTRAS.filter((extra) => choice.extras.includes(extra.name)).map((extra) => extra.label.toLowerCase());
        void window.showInformationMessage(`The environment is ready${labels.length ? `, with: ${labels.join(", ")}` : ""}.`);
        return { status: "created", python };
      } catch (error) {
        if (same) {
          void this.server.restartAsked();
        }
        if (error instanceof CancelledError || under.signal.aborted) {
          this.log.info("creating the environment was cancelled");
          return { status: "cancelled" };
        }
        const reason = error instanceof EnvironmentError ? error.message : `No environment was created: ${String(error)}`;
        this.log.error(reason);
        const chosen = await window.showErrorMessage(reason, "Retry", "Show Log");
        if (chosen === "Show Log") {
          this.log.show();
        }
        if (chosen !== "Retry") {
          return { status: "failed" };
        }
      }
    }
  }

  private async shown(choice: Choice, under: AbortController): Promise<string> {
    const base = await this.base(choice.folder, under.signal);
    const wanted = {
      base: base.path,
      folder: choice.folder,
      extras: choice.extras,
      afresh: choice.afresh ?? false,
      hasToolkit: await hasToolkit(),
      proxy: workspace.getConfiguration("http").get<string>("proxy") ?? "",
    };
    const options = { location: ProgressLocation.Notification, title: "warpwright", cancellable: true };
    return await window.withProgress(options, async (progress, cancelled) => {
      const stopped = cancelled.onCancellationRequested(() => under.abort());
      let told = "";
      let done = 0;
      const show = (message: string, share: number): void => {
        if (message !== told) {
          progress.report({ message, increment: Math.max(0, share * 100 - done) });
          [told, done] = [message, Math.max(done, share * 100)];
        }
      };
      try {
        return await makeEnvironment(wanted, show, (line) => this.log.info(line), under.signal);
      } finally {
        stopped.dispose();
      }
    });
  }

  /** The Python to make it with: the server's, else the path's; never the environment's own. */
  private async base(folder: string, signal: AbortSignal): Promise<Interpreter> {
    const running = this.server.python;
    if (running !== undefined && !liesIn(running.path, [folder])) {
      return running;
    }
    const opened = workspace.isTrusted ? [] : (workspace.workspaceFolders ?? []).map((each) => each.uri.fsPath);
    const faults: string[] = [];
    for (const candidate of onThePath()) {
      try {
        const found = await usable(candidate, [], "Python", { signal, imports: [] });
        if (!liesIn(found.path, [folder, ...opened])) {
          return found;
        }
      } catch (error) {
        faults.push((error as PythonFault).kind === "absent" ? "" : `${(error as PythonFault).message}. `);
      }
    }
    const how: Partial<Record<NodeJS.Platform, string>> = {
      linux: "Debian, Ubuntu: `sudo apt install python3 python3-venv`",
      darwin: "`brew install python`, or python.org",
      win32: "`winget install Python.Python.3.13`, or python.org",
    };
    const told = faults.find(Boolean) ?? "No Python was found. ";
    throw new EnvironmentError(
      `${told}An environment is made with Python ${OLDEST.join(".")} or newer: install one (${how[process.platform] ?? "python.org"}), then try again.`,
    );
  }

  private async ask(preselected?: readonly ExtraName[]): Promise<Choice | undefined> {
    const wanted = preselected ?? ((await hasToolkit()) ? ["emulator"] : ["emulator", "cuda"]);
    const parts = offered().map((extra) => ({
      label: extra.label,
      description: weighs(extra),
      detail: extra.gives,
      picked: wanted.includes(extra.name),
      name: extra.name,
    }));
    const picked = await window.showQuickPick(parts, {
      title: "warpwright: what the environment shall have (1 of 2)",
      placeHolder: "Analysis needs none of these",
      canPickMany: true,
      matchOnDetail: true,
      ignoreFocusOut: true,
    });
    if (picked === undefined || picked.length === 0) {
      return undefined;
    }
    const extras = picked.map((each) => each.name);
    const place = await window.showQuickPick(this.places(), {
      title: "warpwright: where it is put (2 of 2)",
      ignoreFocusOut: true,
    });
    if (place === undefined) {
      return undefined;
    }
    const folder = place.folder ?? (await otherFolder());
    return folder === undefined ? undefined : { extras, folder, afresh: place.afresh };
  }

  private places(): (QuickPickItem & { readonly folder?: string; readonly afresh: boolean })[] {
    const { home } = this;
    const ours = isEnvironment(home)
      ? [
          { label: "$(add) Add to the environment of before", description: home, folder: home, afresh: false },
          { label: "$(trash) In its place, made anew", description: home, folder: home, afresh: true },
        ]
      : [{ label: "$(home) In the extension's own storage", description: home, folder: home, afresh: false }];
    return [...ours, { label: "$(folder) In another folder...", afresh: false }];
  }
}

async function otherFolder(): Promise<string | undefined> {
  const opened = workspace.workspaceFolders?.[0]?.uri.fsPath;
  const typed = await window.showInputBox({
    title: "The environment's folder: a new or an empty one, or an environment to add to",
    value: opened === undefined ? "~/.venv" : join(opened, ".venv"),
    ignoreFocusOut: true,
  });
  return typed?.trim() ? filled(typed, opened) : undefined;
}

/** Whether nvcc is installed beyond what Python's packages bring. */
function hasToolkit(): Promise<boolean> {
  return new Promise((resolve) => {
    execFile("nvcc", ["--version"], { timeout: 5_000, windowsHide: true }, (error) => resolve(error === null));
  });
}
