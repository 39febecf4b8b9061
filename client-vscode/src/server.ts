/** Starting, restarting and stopping the server. Starts never overlap: each waits for the one before. */
import { commands, Uri, window, workspace, type Disposable, type ExtensionContext, type LogOutputChannel } from "vscode";
import {
  CloseAction,
  ErrorAction,
  ExecuteCommandRequest,
  LanguageClient,
  StreamMessageReader,
  StreamMessageWriter,
  type LanguageClientOptions,
} from "vscode-languageclient/node";
import { resolved, turnOffActions, withoutRuns } from "./actions";
import { executeCommand, KERNEL_COMMANDS, titleOf } from "./commands";
import { Deaths, MOST_RESTARTS } from "./deaths";
import { findInterpreter } from "./interpreter";
import { SELECTOR } from "./languages";
import { endOrKill, launch, serverFolders, type Launched } from "./launch";
import { showMessages } from "./messages";
import type { Interpreter } from "./python/probe";
import type { Status } from "./status";
import { PYTHON_BUTTONS, RESTART_BUTTONS, Teller, type Button } from "./telling";
import { Pages } from "./views/pages";
import { Previews } from "./views/previews";

/** The server's commands that compile and run what the opened folder holds. */
const RUNS_CODE: ReadonlySet<string> = new Set([...KERNEL_COMMANDS, "warpwright.propose"]);
const START_MILLISECONDS = 60_000;
const STOP_MILLISECONDS = 2_000;

export class Server implements Disposable {
  private client: LanguageClient | undefined;
  private launched: Launched | undefined;
  private interpreter: Interpreter | undefined;
  private work: Promise<void> = Promise.resolve();
  /** The start that waits for its turn; whoever wants one meanwhile gets this one. */
  private next: Promise<void> | undefined;
  private begun = new AbortController();
  private readonly deaths = new Deaths();
  readonly pages = new Pages();
  readonly previews = new Previews(async (command, argument) =>
    await this.running?.sendRequest(ExecuteCommandRequest.type, { command, arguments: [argument] }),
  );
  private readonly teller: Teller;

  constructor(
    private readonly context: ExtensionContext,
    private readonly log: LogOutputChannel,
    private readonly status: Status,
  ) {
    this.teller = new Teller(log);
  }

  /** The running client; undefined where there is none. For tests. */
  get running(): LanguageClient | undefined {
    return this.client?.isRunning() ? this.client : undefined;
  }

  /** The id of the server's process; undefined where there is none. For tests. */
  get pid(): number | undefined {
    return this.launched?.process.pid;
  }

  /** The Python that runs the server, or that was found for it last. */
  get python(): Interpreter | undefined {
    return this.interpreter;
  }

  /** Start anew because the user asked for it: what went wrong before is forgotten, and told again. */
  restartAsked(): Promise<void> {
    this.deaths.forget();
    this.teller.forget();
    return this.restart();
  }

  restart(): Promise<void> {
    if (this.next === undefined) {
      this.begun.abort();
      const next = this.work.then(async () => {
        this.next = undefined;
        this.begun = new AbortController();
        await this.stopNow();
        await this.startNow(this.begun.signal);
      });
      this.work = this.next = next;
    }
    return this.next;
  }

  stop(): Promise<void> {
    this.begun.abort();
    this.next = undefined;
    this.work = this.work.then(() => this.stopNow());
    return this.work;
  }

  /** Start anew if another Python would be used now. */
  async follow(): Promise<void> {
    const found = await findInterpreter(serverFolders(this.context.extensionPath), this.log).catch(() => undefined);
    if (found !== undefined && found.path !== this.interpreter?.path) {
      await this.restart();
    }
  }

  dispose(): void {
    this.pages.dispose();
    this.previews.dispose();
    void this.stop();
  }

  /** Nothing is thrown from here: a start that failed is told. One that was called off is not. */
  private async startNow(calledOff: AbortSignal): Promise<void> {
    this.status.show({ kind: "starting" });
    try {
      const folders = serverFolders(this.context.extensionPath);
      const python = (this.interpreter = await findInterpreter(folders, this.log, calledOff));
      if (calledOff.aborted) {
        return;
      }
      this.log.info(`starting the server with ${python.path}, Python ${python.version}`);
      const opened = (workspace.workspaceFolders ?? []).map((each) => each.uri.fsPath);
      // A window that comes to be trusted starts the server anew.
      const launched = (this.launched = await launch(python, folders, opened, workspace.isTrusted ? opened : [], this.log));
      const { stdout, stdin } = launched.process;
      if (stdout === null || stdin === null) {
        throw new Error("its pipes could not be opened.");
      }
      const transports = { reader: new StreamMessageReader(stdout), writer: new StreamMessageWriter(stdin), detached: true };
      const client = new LanguageClient("warpwright", "warpwright", () => Promise.resolve(transports), this.clientOptions());
      this.client = client;
      await answered(client.start(), launched, calledOff);
      showMessages(client);
      this.status.show({ kind: "running", python: python.version });
      this.teller.forget();
      await commands.executeCommand("setContext", "warpwright.running", true);
    } catch (error) {
      if (!calledOff.aborted) {
        await this.stopNow();
        await this.failed(error instanceof Error ? error.message : String(error));
      }
    }
  }

  private async stopNow(): Promise<void> {
    const { client, launched } = this;
    this.client = this.launched = undefined;
    await commands.executeCommand("setContext", "warpwright.running", false);
    if (client?.needsStop()) {
      const stopped = client.stop(STOP_MILLISECONDS);
      await stopped.catch((error: unknown) => this.log.warn(`the server did not stop in time: ${String(error)}`));
    }
    await client?.dispose().catch(() => undefined);
    if (launched !== undefined) {
      await endOrKill(launched, this.log);
    }
  }

  private async failed(reason: string, buttons: readonly Button[] = PYTHON_BUTTONS): Promise<void> {
    this.status.show({ kind: "stopped", reason });
    await commands.executeCommand("setContext", "warpwright.running", false);
    this.teller.tell(`warpwright is not running: ${reason}`, buttons);
  }

  /** Start a server that died anew, up to five times in three minutes; then say so and leave it. */
  private async died(client: LanguageClient): Promise<void> {
    if (client !== this.client || !client.isRunning()) {
      return; // It was told to stop, or its start failed, which is told there.
    }
    const count = this.deaths.add(Date.now());
    const words = this.launched?.lastWords();
    const last = words ? ` It said: ${words}` : "";
    if (count > MOST_RESTARTS) {
      const reason = `the server ended ${count} times within three minutes and is not started again.${last}`;
      await this.stop();
      await this.failed(reason, RESTART_BUTTONS);
      return;
    }
    const told = `The warpwright server ended unexpectedly and is started anew (${count} of ${MOST_RESTARTS}).`;
    this.log.warn(`${told}${last}`);
    void window.showWarningMessage(told, "Show Log").then((chosen) => chosen && this.log.show());
    await this.restart();
  }

  private clientOptions(): LanguageClientOptions {
    return {
      documentSelector: SELECTOR,
      outputChannel: this.log,
      initializationOptions: this.settings(),
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: () => {
          if (this.client !== undefined) {
            void this.died(this.client);
          }
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
      middleware: {
        executeCommand: async (command, given) => {
          const client = this.running;
          if (client === undefined || (RUNS_CODE.has(command) && !(await isTrusted()))) {
            return undefined;
          }
          return await this.status.during(titleOf(command), executeCommand(client, this.previews, command, given));
        },
        provideCodeActions: async (document, range, context, token, next) => {
          const offered = [...((await next(document, range, context, token)) ?? []), ...turnOffActions(document, context)];
          return workspace.isTrusted ? offered : withoutRuns(offered);
        },
        resolveCodeAction: async (action, token, next) => await resolved(action, token, next),
        window: {
          showDocument: async (params, token, next) =>
            (await this.pages.show(Uri.parse(params.uri))) ? { success: true } : await next(params, token),
        },
        provideInlineCompletionItems: async (document, position, context, token, next) =>
          workspace.isTrusted ? await next(document, position, context, token) : undefined,
        workspace: {
          configuration: async (params, token, next) => {
            const answer = await next(params, token);
            return Array.isArray(answer) && !workspace.isTrusted ? answer.map(untrusted) : answer;
          },
        },
      },
    };
  }

  private settings(): object {
    const given = JSON.parse(JSON.stringify(workspace.getConfiguration("warpwright"))) as object;
    return workspace.isTrusted ? given : untrusted(given);
  }
}

/** Wait for a server's first answer. Throws where it ends before, is called off, or takes too long. */
async function answered(start: Promise<void>, launched: Launched, calledOff: AbortSignal): Promise<void> {
  const end = new AbortController();
  const other = new Promise<never>((_resolve, reject) => {
    const late = `the server did not answer in ${START_MILLISECONDS / 1000} seconds.`;
    const timer = setTimeout(() => reject(new Error(late)), START_MILLISECONDS);
    const off = (): void => reject(new Error("called off"));
    calledOff.addEventListener("abort", off);
    void launched.ended.then(() => reject(new Error(`the server ended as it started. It said: ${launched.lastWords() || "nothing"}`)));
    end.signal.addEventListener("abort", () => {
      clearTimeout(timer);
      calledOff.removeEventListener("abort", off);
    });
  });
  try {
    await Promise.race([start, other]);
  } finally {
    end.abort();
    start.catch(() => undefined);
    other.catch(() => undefined);
  }
}

/** Whether kernels of the opened folder may be run; where not, the user is told how that is changed. */
async function isTrusted(): Promise<boolean> {
  if (!workspace.isTrusted) {
    const manage = "Manage trust";
    const told = "This runs the kernels of a folder that you do not trust. Analysis works without.";
    if ((await window.showWarningMessage(told, manage)) === manage) {
      await commands.executeCommand("workbench.trust.manage");
    }
  }
  return workspace.isTrusted;
}

/** In a folder that its user does not trust, nothing is compiled: only the text is analysed. */
function untrusted(settings: unknown): object {
  return { ...(settings as object), compile: "off" };
}
