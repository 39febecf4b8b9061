"""What the pages in a browser share: colours for light and dark, the button that changes them, and CUDA in colour."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

_LIGHT = """
--page:#f6f7f9; --card:#ffffff; --ink:#1b2330; --soft:#5d6878; --line:#e3e7ee; --row:#f9fafc; --hover:#eef3fb;
--work:#5b7fc7; --need:#4f9d84; --excess:#e0703a; --bad:#c2351d; --badbg:#fdece7; --more:#a86400;
--emulated:#6a4bbc; --emulatedbg:#efeafc; --measured:#14725a; --measuredbg:#e2f4ee; --track:#eceff4;
--comment:#6c7787; --string:#9a4a12; --cuda:#7a3fb0; --keyword:#1f5fae; --number:#0f6f6a; --directive:#8a3d77;
"""
_DARK = """
--page:#12161d; --card:#191f29; --ink:#dde4ee; --soft:#93a0b3; --line:#29323f; --row:#1c232e; --hover:#222c3a;
--work:#6b90dc; --need:#4aa588; --excess:#ec8150; --bad:#ff8468; --badbg:#3a1f1b; --more:#e0a444;
--emulated:#c3b0fb; --emulatedbg:#2f2752; --measured:#7fdcbd; --measuredbg:#163a31; --track:#252e3b;
--comment:#7f8c9f; --string:#e5a36f; --cuda:#cf9bf5; --keyword:#7fb4f2; --number:#6fcfc6; --directive:#e092c8;
"""
THEME = (
    f":root{{{_LIGHT}color-scheme:light}}"
    f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{_DARK}color-scheme:dark}}}}"
    f":root[data-theme=dark]{{{_DARK}color-scheme:dark}}"
)
THEME_SCRIPT = """
const root = document.documentElement;
document.getElementById("theme").onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
};
"""

THEME_BUTTON = '<button id="theme" type="button" title="Light or dark" aria-label="Light or dark">◐</button>'


def page(title: str, style: str, body: Iterable[str], script: str) -> str:
    """A whole page. It has one element `style`, one `script` and neither inside its body, where all text is escaped:
    an editor that shows it allows these two alone."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{chr(10).join(body)}\n<script>{script}</script>\n</body>\n</html>\n"
    )


_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    r"|(?P<directive>^[ \t]*\#[ \t]*\w+)"
    r"|(?P<cuda>\b(?:__\w+__|(?:thread|block)(?:Idx|Dim)|gridDim|warpSize|__\w+)\b|<<<|>>>)"
    r"|(?P<keyword>\b(?:alignas|auto|bool|break|case|catch|char|class|const|constexpr|continue|default|delete|do|double|"
    r"else|enum|extern|false|float|for|goto|half|if|inline|int|long|namespace|new|nullptr|operator|private|protected|"
    r"public|return|short|signed|sizeof|static|struct|switch|template|this|true|typedef|typename|union|unsigned|using|"
    r"virtual|void|volatile|while|u?int\d+_t|size_t)\b)"
    r"|(?P<number>\b(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?)[uUlLfF]*)",
    re.DOTALL | re.MULTILINE,
)


def highlighted(lines: list[str]) -> list[str]:
    """The lines as HTML, each whole in itself: a comment over several lines is closed and opened at their ends."""
    text = "\n".join(lines)
    out, at = [], 0
    for token in _TOKEN.finditer(text):
        out.append(escape(text[at : token.start()], quote=False))
        pieces = escape(token[0], quote=False).split("\n")
        out.append("\n".join(f'<span class="{token.lastgroup}">{piece}</span>' for piece in pieces))
        at = token.end()
    out.append(escape(text[at:], quote=False))
    return "".join(out).split("\n")


REPORT_STYLE = (
    THEME
    + """
body{margin:0 auto;max-width:1040px;padding:24px;background:var(--page);color:var(--ink);
font:14px/1.5 system-ui,sans-serif}
header{display:flex;justify-content:space-between;align-items:start}h1{font-size:20px;margin:0}
h2{font-size:16px;margin:28px 0 8px}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px;margin:16px 0;
overflow-x:auto}
table{border-collapse:collapse;width:100%}th{text-align:left;color:var(--soft);font-weight:600}
td,th{padding:4px 10px 4px 0;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12.5px}
.soft{color:var(--soft)}.bar{display:inline-block;height:10px;border-radius:2px}button{background:none;border:0;color:var(--soft);cursor:pointer}
svg{width:100%;height:auto}
"""
)
"""Of a page of tables on cards."""
