/** The item in the status bar: what state the server is in. */
import { languages, LanguageStatusSeverity, type Disposable, type LanguageStatusItem } from "vscode";
import { LANGUAGES } from "./languages";

export type State =
  | { readonly kind: "starting" }
  | { readonly kind: "running"; readonly python: string }
  | { readonly kind: "stopped"; readonly reason: string };

export class Status implements Disposable {
  private readonly item: LanguageStatusItem;
  private shown: State = { kind: "starting" };

  constructor() {
    this.item = languages.createLanguageStatusItem("warpwright", [...LANGUAGES]);
    this.item.name = "warpwright";
    this.item.command = { command: "warpwright.showMenu", title: "Menu" };
    this.show(this.shown);
  }

  get state(): State {
    return this.shown;
  }

  show(state: State): void {
    this.shown = state;
    this.item.busy = state.kind === "starting";
    this.item.severity = state.kind === "stopped" ? LanguageStatusSeverity.Error : LanguageStatusSeverity.Information;
    this.item.text = state.kind === "stopped" ? "warpwright: not running" : "warpwright";
    this.item.detail =
      state.kind === "running" ? `Python ${state.python}` : state.kind === "stopped" ? state.reason : "starting";
  }

  dispose(): void {
    this.item.dispose();
  }
}
