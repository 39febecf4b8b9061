/** What the server's pages get when the editor shows them: its colours, and clicks that it hears of. */

/**
 * The pages' own colours (`editor/page_theme.py`) from the editor's. They follow the theme by themselves; those of code
 * have no counterpart and are the pages' own, for light or for dark.
 */
const STYLE = `
:root:root:root{
--page:var(--vscode-editor-background);--card:var(--vscode-editor-background);--ink:var(--vscode-editor-foreground);
--soft:var(--vscode-descriptionForeground);
--line:var(--vscode-contrastBorder,color-mix(in srgb,var(--vscode-editor-foreground) 18%,transparent));
--row:color-mix(in srgb,var(--vscode-editor-foreground) 5%,transparent);
--hover:var(--vscode-list-hoverBackground);--track:color-mix(in srgb,var(--vscode-editor-foreground) 12%,transparent);
--work:var(--vscode-charts-blue);--need:var(--vscode-charts-green);--excess:var(--vscode-charts-orange);
--bad:var(--vscode-editorError-foreground);--more:var(--vscode-editorWarning-foreground);
--badbg:color-mix(in srgb,var(--vscode-editorError-foreground) 14%,transparent);
--emulated:var(--vscode-charts-purple);--measured:var(--vscode-charts-green);
--emulatedbg:color-mix(in srgb,var(--vscode-charts-purple) 18%,transparent);
--measuredbg:color-mix(in srgb,var(--vscode-charts-green) 18%,transparent)}
body{font-family:var(--vscode-font-family)}
code,pre,td.n,td.figure,.pane table{font-family:var(--vscode-editor-font-family)}
code,pre{background:none;color:inherit;padding:0}
#theme{display:none}
[data-path] [data-line]{cursor:pointer}
`;

/** A click on a line of a file asks for its place; one that holds a line, or follows a link, does what it did before. */
export const SCRIPT = `
const editor = acquireVsCodeApi();
const follow = () => {
  const names = document.body.classList;
  const light = names.contains("vscode-light") || names.contains("vscode-high-contrast-light");
  document.documentElement.dataset.theme = light ? "light" : "dark";
};
new MutationObserver(follow).observe(document.body, { attributeFilter: ["class"] });
follow();
document.addEventListener("click", event => {
  const row = event.target.closest("[data-line]"), file = row?.closest("[data-path]");
  if (file && !event.target.closest("a, button")) editor.postMessage({ path: file.dataset.path, line: Number(row.dataset.line) });
});
editor.postMessage({ drawn: document.querySelectorAll("[data-path] [data-line]").length });
`;

/**
 * A page of the server as a webview shows it: nothing is loaded, and only its own style and script and these two are
 * allowed. The server escapes all text, so that `<style>` and `<script>` stand where it put them and nowhere else.
 */
export function asWebview(page: string, nonce: string): string {
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'`;
  return page
    .replace("<head>", () => `<head>\n<meta http-equiv="Content-Security-Policy" content="${policy}">`)
    .replace("<style>", () => `<style nonce="${nonce}">`)
    .replace("</head>", () => `<style nonce="${nonce}">${STYLE}</style>\n</head>`)
    .replace("<script>", () => `<script nonce="${nonce}">`)
    .replace("</body>", () => `<script nonce="${nonce}">${SCRIPT}</script>\n</body>`);
}
