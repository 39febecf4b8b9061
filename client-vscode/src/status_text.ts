/** What the status item says, from what is known. */

/** A thing that features need, as the server's doctor tells of it. */
export interface Part {
  readonly name: string;
  readonly found: boolean;
  readonly what: string;
  readonly gives: string;
  readonly advice: string;
}

export type State =
  | { readonly kind: "starting" }
  | { readonly kind: "running"; readonly python: string }
  | { readonly kind: "stopped"; readonly reason: string };

export interface Known {
  readonly state: State;
  /** What was found on this machine; empty before the first answer. */
  readonly parts: readonly Part[];
  /** What is under way, such as "Optimizing". */
  readonly doing: readonly string[];
  readonly trusted: boolean;
}

export function textOf({ state, doing, trusted }: Known): string {
  switch (state.kind) {
    case "starting":
      return "$(sync~spin) warpwright";
    case "stopped":
      return "$(error) warpwright";
    case "running":
      return doing[0] !== undefined
        ? `$(sync~spin) warpwright: ${doing[0]}`
        : trusted
          ? "$(check) warpwright"
          : "$(shield) warpwright: analysis only";
  }
}

/** Markdown: the state, and a line for each part. */
export function tooltipOf({ state, parts, doing, trusted }: Known): string {
  const lines = [`**warpwright** ${sentence(state)}`];
  if (state.kind === "running") {
    if (!trusted) {
      lines.push("This folder is not trusted: it is analysed, and nothing is compiled or run.");
    }
    lines.push(...doing.map((each) => `${each}...`));
    lines.push(parts.map((part) => `- ${part.name}: ${part.found ? "" : "none. "}${escaped(part.what)}`).join("\n"));
  }
  return lines.filter(Boolean).join("\n\n");
}

function sentence(state: State): string {
  switch (state.kind) {
    case "starting":
      return "is starting.";
    case "running":
      return `runs with Python ${state.python}.`;
    case "stopped":
      return `is not running: ${escaped(state.reason)}`;
  }
}

/** A path may have what Markdown reads as its own. */
function escaped(text: string): string {
  return text.replace(/[\\`*_{}[\]<>#|~]/g, "\\$&");
}
