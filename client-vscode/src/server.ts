/** Starting, restarting and stopping the server. Starts never overlap: each waits for the one before. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { commands, window, workspace, type Disposable, type ExtensionContext, type LogOutputChannel } from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type ErrorHandler,
  type LanguageClientOptions,
  type ServerOptions,
} from "vscode-languageclient/node";
import { executeCommand, KERNEL_COMMANDS } from "./commands";
import { findInterpreter, type Interpreter } from "./interpreter";
import { LANGUAGES } from "./languages";
import type { Status } from "./status";

/** The server's commands that compile and run what the opened folder holds. */
const RUNS_CODE: ReadonlySet<string> = new Set([...KERNEL_COMMANDS, "warpwright.propose"]);
const MOST_RESTARTS = 5;
const RESTARTS_WITHIN_MILLISECONDS = 180_000;

export class Server implements Disposable {
  private client: LanguageClient | undefined;
  private work: Promise<void> = Promise.resolve();

  constructor(
    private readonly context: ExtensionContext,
    private readonly log: LogOutputChannel,
    private readonly status: Status,
  ) {}

  /** The running client; undefined where there is none. For tests. */
  get running(): LanguageClient | undefined {
    return this.client?.isRunning() ? this.client : undefined;
  }

  restart(): Promise<void> {
    this.work = this.work.then(() => this.stopNow()).then(() => this.startNow());
    return this.work;
  }

  stop(): Promise<void> {
    this.work = this.work.then(() => this.stopNow());
    return this.work;
  }

  dispose(): void {
    void this.stop();
  }

  private async startNow(): Promise<void> {
    this.status.show({ kind: "starting" });
    try {
      const python = await findInterpreter();
      this.log.info(`starting the server with ${python.path}, Python ${python.version}`);
      const client = new LanguageClient(
        "warpwright",
        "warpwright",
        this.serverOptions(python),
        this.clientOptions(),
      );
      this.client = client;
      await client.start();
      this.status.show({ kind: "running", python: python.version });
      await commands.executeCommand("setContext", "warpwright.running", true);
    } catch (error) {
      await this.failed(error instanceof Error ? error.message : String(error));
    }
  }

  private async stopNow(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await commands.executeCommand("setContext", "warpwright.running", false);
    if (client?.needsStop()) {
      await client.stop().catch((error: unknown) => this.log.warn(`the server did not stop in time: ${String(error)}`));
    }
    await client?.dispose().catch(() => undefined);
  }

  private async failed(reason: string): Promise<void> {
    this.log.error(reason);
    this.status.show({ kind: "stopped", reason });
    await commands.executeCommand("setContext", "warpwright.running", false);
    const setting = "Open setting";
    const output = "Show output";
    void window.showErrorMessage(`warpwright is not running: ${reason}`, setting, output).then((chosen) => {
      if (chosen === setting) {
        void commands.executeCommand("workbench.action.openSettings", "warpwright.interpreter");
      } else if (chosen === output) {
        this.log.show();
      }
    });
  }

  private serverOptions(python: Interpreter): ServerOptions {
    const bundled = join(this.context.extensionPath, "bundled");
    const environment = { ...process.env, PYTHONUTF8: "1" };
    if (existsSync(bundled)) {
      const folders = [join(bundled, "server"), join(bundled, "libs"), process.env["PYTHONPATH"]];
      Object.assign(environment, { PYTHONPATH: folders.filter((folder) => folder).join(delimiter) });
    }
    return { command: python.path, args: ["-P", "-m", "warpwright.lsp"], options: { env: environment } };
  }

  private clientOptions(): LanguageClientOptions {
    return {
      documentSelector: LANGUAGES.flatMap((language) =>
        ["file", "untitled"].map((scheme) => ({ scheme, language })),
      ),
      outputChannel: this.log,
      initializationOptions: this.settings(),
      errorHandler: this.errorHandler(),
      middleware: {
        executeCommand: async (command, given) => {
          const client = this.running;
          if (client === undefined || (RUNS_CODE.has(command) && !(await isTrusted()))) {
            return undefined;
          }
          return await executeCommand(client, command, given);
        },
        // A fix without its edit is made and verified, which runs the kernel, when it is chosen.
        provideCodeActions: async (document, range, context, token, next) => {
          const offered = await next(document, range, context, token);
          return workspace.isTrusted ? offered : offered?.filter((each) => "edit" in each && each.edit !== undefined);
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

  /** Start a server that died anew, up to five times in three minutes; then say so and leave it. */
  private errorHandler(): ErrorHandler {
    const deaths: number[] = [];
    return {
      error: () => ({ action: ErrorAction.Continue }),
      closed: () => {
        const now = Date.now();
        deaths.push(now);
        while (deaths[0] !== undefined && now - deaths[0] > RESTARTS_WITHIN_MILLISECONDS) {
          deaths.shift();
        }
        if (deaths.length <= MOST_RESTARTS) {
          this.log.warn(`the server ended; it is started anew (${deaths.length} of ${MOST_RESTARTS})`);
          void window.showWarningMessage("The warpwright server ended and was started anew.");
          return { action: CloseAction.Restart, handled: true };
        }
        void this.failed(`the server ended ${deaths.length} times within three minutes.`);
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
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
