/** Pages that the server wrote, such as a kernel's results, in the editor. */
import { randomBytes } from "node:crypto";
import { basename } from "node:path";
import { commands, Range, Uri, ViewColumn, window, workspace, type Disposable, type WebviewPanel } from "vscode";
import { plain } from "../plain";
import { asWebview } from "./theme";

interface Shown {
  readonly panel: WebviewPanel;
  /** How many lines of source the page has, once its script has run. */
  drawn: number | undefined;
}

/** A panel for each page; one that is shown again is drawn anew. */
export class Pages implements Disposable {
  private readonly open = new Map<string, Shown>();

  /** Show what the server wrote: a page as a webview, Markdown as the editor previews it. False where it is neither. */
  async show(file: Uri): Promise<boolean> {
    if (file.path.endsWith(".md")) {
      await commands.executeCommand("markdown.showPreview", file);
      return true;
    }
    if (!file.path.endsWith(".html")) {
      return false;
    }
    const page = Buffer.from(await workspace.fs.readFile(file)).toString("utf8");
    const shown = this.open.get(file.fsPath) ?? this.panel(file);
    shown.drawn = undefined;
    shown.panel.title = /<title>([^<]*)<\/title>/.exec(page)?.[1] ?? basename(file.fsPath);
    shown.panel.webview.html = asWebview(page, randomBytes(16).toString("hex"));
    shown.panel.reveal(undefined, true);
    return true;
  }

  /** How many lines of source the page of a file has that is drawn; undefined where none is. For tests. */
  drawn(file: Uri): number | undefined {
    return this.open.get(file.fsPath)?.drawn;
  }

  dispose(): void {
    for (const { panel } of this.open.values()) {
      panel.dispose();
    }
  }

  private panel(file: Uri): Shown {
    const where = { viewColumn: ViewColumn.Beside, preserveFocus: true };
    // Kept while it is hidden: where it was scrolled to, and which lines are held, is not in the file.
    const options = { enableScripts: true, localResourceRoots: [], retainContextWhenHidden: true };
    const panel = window.createWebviewPanel("warpwright.page", "warpwright", where, options);
    const shown: Shown = { panel, drawn: undefined };
    panel.webview.onDidReceiveMessage((message: unknown) => {
      const { path, line, drawn } = (message ?? {}) as { path?: unknown; line?: unknown; drawn?: unknown };
      if (typeof drawn === "number") {
        shown.drawn = drawn;
      } else if (typeof path === "string" && typeof line === "number") {
        void revealLine(path, line);
      }
    });
    panel.onDidDispose(() => this.open.delete(file.fsPath));
    this.open.set(file.fsPath, shown);
    return shown;
  }
}

/** Show a line (1-based) of a file, in the column where the file is open already, else in the first. */
export async function revealLine(path: string, line: number): Promise<void> {
  const uri = Uri.file(path);
  const visible = window.visibleTextEditors.find((each) => each.document.uri.toString() === uri.toString());
  const at = new Range(line - 1, 0, line - 1, 0);
  try {
    await window.showTextDocument(uri, { viewColumn: visible?.viewColumn ?? ViewColumn.One, selection: at });
  } catch {
    void window.showWarningMessage(plain(`${path} cannot be opened.`));
  }
}
