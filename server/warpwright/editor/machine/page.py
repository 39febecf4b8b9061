"""The style and the script of the page that shows source and machine code side by side."""

from __future__ import annotations

from warpwright.editor.page_theme import THEME, THEME_SCRIPT

STYLE = (
    THEME
    + """
*{box-sizing:border-box}
html,body{height:100%}
body{margin:0;padding:18px 20px 14px;background:var(--page);color:var(--ink);display:flex;flex-direction:column;
 gap:12px;font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
code,table,select{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace}
header{display:flex;justify-content:space-between;align-items:flex-start;gap:20px}
h1{font-size:19px;font-weight:600;margin:0 0 2px;overflow-wrap:anywhere;display:flex;gap:10px;align-items:center;
 flex-wrap:wrap}
h1 code,h1 select{font-size:17px;font-weight:600}
h1 select{background:var(--card);color:var(--ink);border:1px solid var(--line);border-radius:8px;padding:2px 6px;
 max-width:70vw}
header p{margin:0;color:var(--soft)}
.badge{font-size:11px;font-weight:600;letter-spacing:.04em;padding:3px 8px;border-radius:99px;white-space:nowrap;
 color:var(--emulated);background:var(--emulatedbg)}
#theme{border:1px solid var(--line);background:var(--card);color:var(--soft);border-radius:8px;font-size:17px;
 line-height:1;padding:7px 10px;cursor:pointer}
.about{display:none;gap:10px;flex-wrap:wrap}
.about.on{display:flex}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:7px 12px;min-width:112px}
.tile h2{color:var(--soft);font-size:12px;font-weight:500;margin:0}
.tile b{font-size:16px;font-weight:600;font-variant-numeric:tabular-nums}
.tile span{display:block;color:var(--soft);font-size:12px}
.tile.bad b{color:var(--bad)}
main{flex:1;min-height:320px;display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1.15fr);gap:12px}
.pane{background:var(--card);border:1px solid var(--line);border-radius:10px;display:flex;flex-direction:column;
 min-height:0;overflow:hidden}
.bar{display:flex;gap:6px;align-items:center;flex-wrap:wrap;padding:7px 10px;border-bottom:1px solid var(--line);
 min-height:42px}
.bar h2{margin:0 auto 0 2px;font-size:12.5px;font-weight:500;color:var(--soft);overflow-wrap:anywhere}
.bar button{border:1px solid var(--line);background:var(--page);color:var(--soft);border-radius:7px;font:inherit;
 font-size:12px;padding:2px 9px;cursor:pointer;white-space:nowrap}
.bar button:hover,#theme:hover{color:var(--ink)}
.bar button.on{background:var(--ink);color:var(--card);border-color:var(--ink)}
#marks,#kinds{display:flex;gap:5px;flex-wrap:wrap}
#marks[hidden]{display:none}
.scroll{overflow:auto;flex:1}
table{border-collapse:collapse;width:100%;font-size:12.5px;line-height:1.55}
table[hidden],section[hidden]{display:none}
td{padding:0 8px;vertical-align:top;white-space:pre}
td.n{text-align:right;color:var(--soft);user-select:none;padding-right:9px}
tr.code td:first-child{box-shadow:inset 4px 0 hsl(var(--h) 55% 58%)}
tr[data-at]{cursor:pointer}
td.line{text-align:right;color:var(--soft);font-size:11px;user-select:none;padding-right:0}
td.line small{opacity:.75;margin-left:2px}
td.count{text-align:right;color:var(--soft);font-variant-numeric:tabular-nums;min-width:46px}
.source tr:not(.code) td{opacity:.62}
tr.file td{padding:9px 12px 5px;color:var(--soft);font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
tr.label td{color:var(--cuda);padding-top:3px}
tr.part td{padding:10px 8px 3px;color:var(--soft);font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
tr:hover td{background:var(--hover)}
tr.lit td{background:hsl(var(--h,210) 75% 50%/.22)}
tr.near td{background:hsl(var(--h,210) 75% 50%/.10)}
tr.pinned td{outline:1px solid hsl(var(--h) 60% 55%);outline-offset:-1px}
tr.dim td{opacity:.28}
.code td.text b{font-weight:600}
b.memory{color:var(--keyword)}b.double{color:var(--emulated)}b.tensor{color:var(--need)}b.flow{color:var(--cuda)}
b.warp{color:var(--number)}b.convert{color:var(--directive)}
td.text i{font-style:normal;color:var(--soft)}
td.text a{color:var(--cuda)}
td.text,.source td:last-child{width:100%}
td.text{white-space:pre-wrap;overflow-wrap:anywhere;min-width:30ch}
td.marks{padding-right:12px}
td.marks div{padding-top:2px;display:flex;gap:4px;width:max-content;align-items:baseline}
.mark{display:inline-block;font:11px/1.35 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;border-radius:5px;
 padding:0 6px;background:var(--track);color:var(--soft)}
.mark.spill,.mark.local-memory{background:var(--badbg);color:var(--bad);font-weight:600}
.mark.local-variable,.mark.call,.mark.generic-address{background:color-mix(in srgb,var(--more) 16%,transparent);
 color:var(--more);font-weight:600}
.mark.fp64{background:var(--emulatedbg);color:var(--emulated);font-weight:600}
.mark.wide,.mark.tensor-core{background:var(--measuredbg);color:var(--measured);font-weight:600}
.mark.access{background:none;padding:0 2px}
tr.never td{opacity:.5}
.comment{color:var(--comment);font-style:italic}.string{color:var(--string)}.cuda{color:var(--cuda)}
.keyword{color:var(--keyword)}.number{color:var(--number)}.directive{color:var(--directive)}
@media(max-width:900px){main{grid-template-columns:1fr;grid-template-rows:45vh 60vh}html,body{height:auto}}
"""
)
SCRIPT = (
    THEME_SCRIPT
    + """
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const one = (selector, within = document) => within.querySelector(selector);
const lines = new Map(all(".source tr[data-at]").map(row => [row.dataset.at, row]));
const kernels = all("section[data-kernel]");
let kernel = 0, kind = "sass", pinned = null, rows = new Map();

function show() {
  kernels.forEach((section, index) => { section.hidden = index !== kernel; });
  all(".about").forEach((about, index) => about.classList.toggle("on", index === kernel));
  const section = kernels[kernel];
  all("table", section).forEach(table => { table.hidden = table.className !== kind; });
  all("#kinds button").forEach(button => button.classList.toggle("on", button.dataset.kind === kind));
  rows = new Map();
  const counts = new Map();
  for (const row of all(`table.${kind} tr[data-at]`, section)) {
    const at = row.dataset.at.split(" ");
    counts.set(at[0], (counts.get(at[0]) ?? 0) + 1);
    for (const each of at) rows.set(each, [...(rows.get(each) ?? []), row]);
  }
  for (const [at, row] of lines) {
    row.classList.toggle("code", rows.has(at));
    one(".count", row).textContent = counts.get(at) ?? (rows.has(at) ? `+${rows.get(at).length}` : "");
  }
  const marks = one("#marks");
  marks.replaceChildren(...all(`ul[data-kernel="${kernel}"] button`).map(button => {
    const copy = button.cloneNode(true);
    copy.onclick = () => filter(copy);
    return copy;
  }));
  marks.hidden = kind !== "sass";
  pin(null);
}
function filter(button) {
  const on = !button.classList.contains("on");
  all("#marks button").forEach(each => each.classList.toggle("on", on && each === button));
  for (const row of all("tr[data-at], tr.step", kernels[kernel]))
    row.classList.toggle("dim", on && !row.classList.contains(button.dataset.mark));
  if (on) one(`tr.${button.dataset.mark}`, one("table.sass", kernels[kernel]))?.scrollIntoView({block: "center"});
}
function unlight() { all("tr.lit, tr.near").forEach(row => row.classList.remove("lit", "near")); }
function light(row) {
  unlight();
  if (!row) return;
  const at = row.dataset.at.split(" ");
  if (row.closest(".source")) {
    for (const each of rows.get(at[0]) ?? []) each.classList.add(each.dataset.at.startsWith(at[0] + " ") ||
      each.dataset.at === at[0] ? "lit" : "near");
    row.classList.add("lit");
  } else {
    at.forEach((each, index) => lines.get(each)?.classList.add(index ? "near" : "lit"));
    row.classList.add("lit");
  }
}
function pin(row) {
  if (pinned) pinned.classList.remove("pinned");
  pinned = row === pinned ? null : row;
  light(pinned);
  if (!pinned) return;
  pinned.classList.add("pinned");
  const at = pinned.dataset.at.split(" ")[0];
  const other = pinned.closest(".source") ? (rows.get(at) ?? [])[0] : lines.get(at);
  other?.scrollIntoView({block: "center"});
}
document.addEventListener("mouseover", event => {
  const row = event.target.closest?.("tr[data-at]");
  if (row && !pinned) light(row); else if (!row && !pinned) unlight();
});
document.addEventListener("click", event => {
  const row = event.target.closest?.("tr[data-at]");
  if (row && !event.target.closest("a")) pin(row);
});
document.addEventListener("keydown", event => { if (event.key === "Escape" && pinned) pin(pinned); });
all("#kinds button").forEach(button => { button.onclick = () => { kind = button.dataset.kind; show(); }; });
const choice = one("#kernel");
if (choice) choice.onchange = () => { kernel = choice.selectedIndex; show(); start(); };
function start() { one(".source tr.code")?.scrollIntoView({block: "start"}); window.scrollTo(0, 0); }
show();
start();
const wanted = new URLSearchParams(location.hash.slice(1)).get("line");
if (wanted && lines.has(wanted)) pin(lines.get(wanted));
"""
)
