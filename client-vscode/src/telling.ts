/** What is told of a server that does not run: each reason once until it runs again, with what can be done. */
import { commands, window, type LogOutputChannel } from "vscode";

/** A button and the command behind it. */
export type Offer = readonly [label: string, command: string];

export const offerPython: readonly Offer[] = [
  ["Select Interpreter", "warpwright.selectInterpreter"],
  ["Create Environment", "warpwright.createEnvironment"],
  ["Show Log", "warpwright.showOutput"],
];
export const offerRestart: readonly Offer[] = [
  ["Restart", "warpwright.restart"],
  ["Show Log", "warpwright.showOutput"],
];

export class Teller {
  private readonly told = new Set<string>();

  constructor(private readonly log: LogOutputChannel) {}

  tell(message: string, offers: readonly Offer[]): void {
    this.log.error(message);
    if (this.told.has(message)) {
      return;
    }
    this.told.add(message);
    void window.showErrorMessage(message, ...offers.map(([label]) => label)).then((chosen) => {
      const offer = offers.find(([label]) => label === chosen);
      return offer && commands.executeCommand(offer[1]);
    });
  }

  forget(): void {
    this.told.clear();
  }
}
