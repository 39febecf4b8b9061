/** What a search offers, as a diff with its badge and its explanation, until its user applies or discards it. */
import { commands, TabInputTextDiff, Uri, window, workspace, type Disposable, type Tab } from "vscode";
import { plain } from "../plain";

export const SCHEME = "warpwright-preview";
const APPLY = "Apply";
const DISCARD = "Discard";
const OTHERS = "Other candidates";

interface Choice {
  readonly candidate: number;
  readonly title: string;
  readonly badge: string;
}

/** As the server describes it, see `lsp/offers.py`. */
export interface Offer extends Choice {
  readonly id: string;
  readonly explanation: string;
  readonly choices: readonly Choice[];
}

interface Answer {
  readonly status: string;
  readonly message: string;
  readonly offer: Offer | null;
  readonly files?: readonly { readonly uri: string; readonly text: string }[];
}

/** Run a command of the server; undefined where none is running. */
export type Ask = (command: string, argument: object) => Promise<unknown>;

export class Previews implements Disposable {
  /** The texts that are shown, by their addresses. */
  private readonly texts = new Map<string, string>();
  private readonly offers = new Map<string, Offer>();
  private readonly parts: Disposable[];

  constructor(private readonly ask: Ask) {
    this.parts = [
      workspace.registerTextDocumentContentProvider(SCHEME, {
        provideTextDocumentContent: (uri) => this.texts.get(uri.toString()),
      }),
      this.command("warpwright.applyPreview", (offer) => this.apply(offer)),
      this.command("warpwright.discardPreview", (offer) => this.close(offer)),
      this.command("warpwright.otherCandidate", (offer) => this.other(offer)),
      workspace.onDidCloseTextDocument(({ uri }) => uri.scheme === SCHEME && this.forget(uri)),
    ];
  }

  dispose(): void {
    this.parts.forEach((each) => each.dispose());
  }

  /** Show an offer, with another of its candidates where one is named; the diff is of the files as they are now. */
  async show(offered: Offer, candidate = offered.candidate): Promise<void> {
    const answer = (await this.ask("warpwright.preview", { offer: offered.id, candidate })) as Answer | undefined;
    const offer = answer?.offer;
    if (!offer || !answer?.files?.length) {
      return; // The server has said why: the text that it holds for is gone.
    }
    const sides = answer.files.map((file) => {
      const original = Uri.parse(file.uri);
      const updated = original.with({ scheme: SCHEME, authority: "", query: nameOf(offer), fragment: "" });
      this.texts.set(updated.toString(), file.text);
      this.offers.set(updated.toString(), offer);
      return [original, original, updated] as const;
    });
    const title = `${offer.title} [${offer.badge}]`;
    const [only, ...more] = sides;
    if (only !== undefined && more.length === 0) {
      await commands.executeCommand("vscode.diff", only[1], only[2], title, { preview: true });
    } else {
      await commands.executeCommand("vscode.changes", title, sides);
    }
    void this.tell(offer);
  }

  private async tell(offer: Offer): Promise<void> {
    const others = offer.choices.length > 1 ? [OTHERS] : [];
    const told = `${offer.title} [${offer.badge}]. ${offer.explanation}`;
    const chosen = await window.showInformationMessage(plain(told), APPLY, DISCARD, ...others);
    if (chosen === APPLY) {
      await this.apply(offer);
    } else if (chosen === DISCARD) {
      await this.close(offer);
    } else if (chosen === OTHERS) {
      await this.other(offer);
    }
  }

  /** A command on the preview that is named, else on that of the active tab. */
  private command(name: string, run: (offer: Offer) => unknown): Disposable {
    return commands.registerCommand(name, async (named?: Uri) => {
      const input = window.tabGroups.activeTabGroup.activeTab?.input;
      const place = named ?? (input instanceof TabInputTextDiff ? input.modified : undefined);
      const offer = place && this.offers.get(place.toString());
      if (offer === undefined) {
        void window.showInformationMessage("Nothing is offered here: run Optimize, Reduce memory or Fix on a kernel.");
        return undefined;
      }
      return await run(offer);
    });
  }

  /** One change of the workspace, moved beside what was edited meanwhile; the server says where that cannot be. */
  private async apply(offer: Offer): Promise<unknown> {
    await this.close(offer);
    return await this.ask("warpwright.apply", { offer: offer.id, candidate: offer.candidate });
  }

  private async other(offer: Offer): Promise<void> {
    const items = offer.choices.map((choice) => ({ label: choice.title, description: choice.badge, choice }));
    const chosen = await window.showQuickPick(items, { title: "Candidates that passed verification", matchOnDescription: true });
    if (chosen !== undefined && chosen.choice.candidate !== offer.candidate) {
      await this.close(offer);
      await this.show(offer, chosen.choice.candidate);
    }
  }

  /** Close the diff of an offer, of all of its files. */
  private async close(offer: Offer): Promise<void> {
    const isOf = (uri: Uri): boolean => uri.scheme === SCHEME && uri.query === nameOf(offer);
    const tabs = window.tabGroups.all.flatMap((group) => group.tabs.filter((tab) => modifiedIn(tab).some(isOf)));
    await window.tabGroups.close(tabs);
    [...this.offers.keys()].map((key) => Uri.parse(key)).filter(isOf).forEach((uri) => this.forget(uri));
  }

  private forget(uri: Uri): void {
    this.texts.delete(uri.toString());
    this.offers.delete(uri.toString());
  }
}

/** Tells the previews of two offers, and of two candidates of one, apart. */
function nameOf(offer: Offer): string {
  return `${offer.id}.${offer.candidate}`;
}

/** The right sides of what a tab compares; the type of one with several files is younger than the oldest editor. */
function modifiedIn(tab: Tab): Uri[] {
  const input = tab.input as { modified?: Uri; textDiffs?: readonly { modified: Uri }[] } | undefined;
  return [...(input?.modified ? [input.modified] : []), ...(input?.textDiffs ?? []).map((each) => each.modified)];
}
