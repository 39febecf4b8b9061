/** The item in the status bar: the server's state, what is under way, and what was found on this machine. */
import {
  EventEmitter,
  MarkdownString,
  StatusBarAlignment,
  ThemeColor,
  window,
  workspace,
  type Disposable,
  type StatusBarItem,
} from "vscode";
import { LANGUAGES } from "./languages";
import { textOf, tooltipOf, type Known, type Part, type State } from "./status_text";

export class Status implements Disposable {
  private readonly item: StatusBarItem;
  private readonly changed = new EventEmitter<State>();
  private readonly watched: Disposable;
  private known: Omit<Known, "trusted"> = { state: { kind: "starting" }, parts: [], doing: [] };
  /** Fires with each state that is shown. */
  readonly onDidChange = this.changed.event;

  constructor() {
    this.item = window.createStatusBarItem("warpwright.status", StatusBarAlignment.Right, 100);
    this.item.name = "warpwright";
    this.item.command = "warpwright.showMenu";
    this.watched = window.onDidChangeVisibleTextEditors(() => this.draw());
    this.draw();
  }

  get state(): State {
    return this.known.state;
  }

  get parts(): readonly Part[] {
    return this.known.parts;
  }

  /** What the item says, for tests. */
  get text(): string {
    return this.item.text;
  }

  show(state: State): void {
    this.known = { ...this.known, state };
    this.draw();
    this.changed.fire(state);
  }

  found(parts: readonly Part[]): void {
    this.known = { ...this.known, parts };
    this.draw();
  }

  /** Say what is done for as long as it takes. */
  async during<T>(doing: string | undefined, work: Promise<T>): Promise<T> {
    if (doing === undefined) {
      return await work;
    }
    this.known = { ...this.known, doing: [...this.known.doing, doing] };
    this.draw();
    try {
      return await work;
    } finally {
      const others = [...this.known.doing];
      others.splice(others.indexOf(doing), 1);
      this.known = { ...this.known, doing: others };
      this.draw();
    }
  }

  dispose(): void {
    this.watched.dispose();
    this.changed.dispose();
    this.item.dispose();
  }

  private draw(): void {
    const known = { ...this.known, trusted: workspace.isTrusted };
    const stopped = known.state.kind === "stopped";
    this.item.text = textOf(known);
    this.item.tooltip = new MarkdownString(tooltipOf(known));
    this.item.backgroundColor = stopped ? new ThemeColor("statusBarItem.errorBackground") : undefined;
    this.item.accessibilityInformation = { label: `warpwright: ${known.doing[0] ?? known.state.kind}`, role: "button" };
    if (stopped || window.visibleTextEditors.some((editor) => LANGUAGES.includes(editor.document.languageId))) {
      this.item.show();
    } else {
      this.item.hide();
    }
  }
}
