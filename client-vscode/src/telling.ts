/** What is told of a server that does not run: each reason once until it runs again, with what can be done. */
import { commands, window, type LogOutputChannel } from "vscode";
import { plain } from "./plain";
import { CREATE } from "./advice";

/** A button and the command behind it. */
export type Button = readonly [label: string, command: string];

export const PYTHON_BUTTONS: readonly Button[] = [
  ["Select Interpreter", "warpwright.selectInterpreter"],
  [CREATE, "warpwright.createEnvironment"],
  ["Show Log", "warpwright.showOutput"],
];
export const RESTART_BUTTONS: readonly Button[] = [
  ["Restart", "warpwright.restart"],
  ["Show Log", "warpwright.showOutput"],
];

export class Teller {
  private readonly told = new Set<string>();

  constructor(private readonly log: LogOutputChannel) {}

  tell(message: string, buttons: readonly Button[]): void {
    this.log.error(message);
    if (this.told.has(message)) {
      return;
    }
    this.told.add(message);
    void window.showErrorMessage(plain(message), ...buttons.map(([label]) => label)).then((chosen) => {
      const button = buttons.find(([label]) => label === chosen);
      return button && commands.executeCommand(button[1]);
    });
  }

  forget(): void {
    this.told.clear();
  }
}
