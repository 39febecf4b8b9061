/** What a search offers, as a diff with its badge and its explanation, until its user applies or discards it. */
import { commands, TabInputTextDiff, Uri, window, workspace, type Disposable, type Tab } from "vscode";

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
      commands.registerCommand("warpwright.applyPreview", (uri?: Uri) => this.apply(uri)),
      commands.registerCommand("warpwright.discardPreview", (uri?: Uri) => this.discard(uri)),
      commands.registerCommand("warpwright.otherCandidate", (uri?: Uri) => this.other(uri)),
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
      const updated = original.with({ scheme: SCHEME, authority: "", query: `${offer.id}.${candidate}`, fragment: "" });
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
    void this.tell(offer, sides[0]?.[2]);
  }

  private async tell(offer: Offer, uri: Uri | undefined): Promise<void> {
    const others = offer.choices.length > 1 ? [OTHERS] : [];
    const told = `${offer.title} [${offer.badge}]. ${offer.explanation}`;
    const chosen = await window.showInformationMessage(told, APPLY, DISCARD, ...others);
    if (chosen === APPLY) {
      await this.apply(uri);
    } else if (chosen === DISCARD) {
      await this.discard(uri);
    } else if (chosen === OTHERS) {
      await this.other(uri);
    }
  }

  /** One change of the workspace, moved beside what was edited meanwhile; the server says where that cannot be. */
  private async apply(uri?: Uri): Promise<Answer | undefined> {
    const [place, offer] = this.at(uri);
    if (place === undefined || offer === undefined) {
      return undefined;
    }
    await this.close(place);
    const argument = { offer: offer.id, candidate: offer.candidate };
    return (await this.ask("warpwright.apply", argument)) as Answer | undefined;
  }

  private async discard(uri?: Uri): Promise<void> {
    const [place] = this.at(uri);
    if (place !== undefined) {
      await this.close(place);
    }
  }

  private async other(uri?: Uri): Promise<void> {
    const [place, offer] = this.at(uri);
    if (place === undefined || offer === undefined) {
      return;
    }
    const items = offer.choices.map((choice) => ({ label: choice.title, description: choice.badge, choice }));
    const chosen = await window.showQuickPick(items, { title: "Candidates that passed verification", matchOnDescription: true });
    if (chosen !== undefined && chosen.choice.candidate !== offer.candidate) {
      await this.close(place);
      await this.show(offer, chosen.choice.candidate);
    }
  }

  /** The preview that is meant: the one named, else that of the active tab. */
  private at(uri?: Uri): [Uri | undefined, Offer | undefined] {
    const input = window.tabGroups.activeTabGroup.activeTab?.input;
    const place = uri ?? (input instanceof TabInputTextDiff ? input.modified : undefined);
    const offer = place && this.offers.get(place.toString());
    if (offer === undefined) {
      void window.showInformationMessage("Nothing is offered here: run Optimize, Reduce memory or Fix on a kernel.");
    }
    return [place, offer];
  }

  /** Close the diff of a preview, and with it all files of its offer. */
  private async close(uri: Uri): Promise<void> {
    const shows = (tab: Tab): boolean => modifiedIn(tab).some((each) => each.scheme === SCHEME && each.query === uri.query);
    await window.tabGroups.close(window.tabGroups.all.flatMap((group) => group.tabs.filter(shows)));
    for (const key of [...this.offers.keys()].filter((each) => Uri.parse(each).query === uri.query)) {
      this.forget(Uri.parse(key));
    }
  }

  private forget(uri: Uri): void {
    this.texts.delete(uri.toString());
    this.offers.delete(uri.toString());
  }
}

/** The right sides of what a tab compares; the type of one with several files is younger than the oldest editor. */
function modifiedIn(tab: Tab): Uri[] {
  const input = tab.input as { modified?: Uri; textDiffs?: readonly { modified: Uri }[] } | undefined;
  return [...(input?.modified ? [input.modified] : []), ...(input?.textDiffs ?? []).map((each) => each.modified)];
}
