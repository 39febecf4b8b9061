"""The style and the script of a profile's page: colours for light and dark, and sorting by a column."""

from __future__ import annotations

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
STYLE = (
    f":root{{{_LIGHT}color-scheme:light}}"
    f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{_DARK}color-scheme:dark}}}}"
    f":root[data-theme=dark]{{{_DARK}color-scheme:dark}}"
    """
*{box-sizing:border-box}
body{margin:0;padding:28px clamp(12px,3vw,44px) 48px;background:var(--page);color:var(--ink);
 font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
code,pre,td.n,td.figure{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
header{display:flex;justify-content:space-between;align-items:flex-start;gap:24px;margin-bottom:18px}
h1{font-size:20px;font-weight:600;margin:0 0 4px;overflow-wrap:anywhere}
h1 code{font-size:19px}
header p{margin:0;color:var(--soft)}
h2{font-size:13px;font-weight:600;margin:0 0 8px}
.badge{font-size:11px;font-weight:600;letter-spacing:.04em;text-transform:uppercase;padding:3px 8px;border-radius:99px;
 vertical-align:2px;margin-left:6px;white-space:nowrap}
.badge.emulated{color:var(--emulated);background:var(--emulatedbg)}
.badge.measured{color:var(--measured);background:var(--measuredbg)}
#theme{border:1px solid var(--line);background:var(--card);color:var(--soft);border-radius:8px;font-size:17px;
 line-height:1;padding:7px 10px;cursor:pointer}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(168px,1fr));gap:12px;margin-bottom:18px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px;display:flex;
 flex-direction:column;gap:2px}
.tile h2{color:var(--soft);font-weight:500;margin:0}
.tile b{font-size:21px;font-weight:600;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:12.5px}
.tile .times{font-size:14px;font-weight:600;color:var(--more)}
.tile.bad b,.tile.bad .times{color:var(--bad)}
.faults,.legend,.file{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;
 margin-bottom:18px}
.faults{border-color:var(--bad)}
.faults h2{color:var(--bad)}
.faults ol{margin:0;padding-left:22px}
.faults a{color:var(--bad)}
.file{padding:0}
.bar{display:flex;justify-content:space-between;align-items:center;gap:16px;padding:9px 16px}
.bar h2{margin:0;color:var(--soft);font-weight:500;overflow-wrap:anywhere}
.bar button{border:1px solid var(--line);background:var(--page);color:var(--soft);border-radius:7px;font:inherit;
 font-size:12px;padding:3px 10px;cursor:pointer;white-space:nowrap}
.bar button:hover,#theme:hover{color:var(--ink)}
table.kernel tr.outside{display:none}
table{border-collapse:collapse;width:100%;font-size:12.5px}
th{position:sticky;top:0;z-index:1;background:var(--card);text-align:right;font-weight:500;color:var(--soft);
 padding:8px 12px;box-shadow:inset 0 1px var(--line),inset 0 -1px var(--line);white-space:nowrap}
th.source{text-align:left;width:99%;min-width:360px}
th[data-sort]{cursor:pointer}
th[data-sort]:hover{color:var(--ink)}
th.sorted::after{content:" ▾"}
td{padding:1px 12px;vertical-align:top;white-space:nowrap}
td.n{text-align:right;color:var(--soft);user-select:none;padding-right:8px}
td.source{border-right:1px solid var(--line);white-space:normal}
pre{margin:0;font-size:12.5px;line-height:1.6;tab-size:4;white-space:pre-wrap;overflow-wrap:anywhere}
tr:hover td{background:var(--hover)}
tr:target td{background:var(--badbg)}
tr.outside pre,tr.outside .n{opacity:.55}
tbody tr:last-child td{padding-bottom:10px}
tr.fault td.n,tr.fault td.source{background:var(--badbg)}
tr.fault td.n{box-shadow:inset 3px 0 var(--bad)}
.callout{margin:2px 0 6px;padding:5px 10px;border-left:3px solid var(--bad);background:var(--card);color:var(--bad);
 white-space:normal;max-width:90ch;font:12.5px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
td.figure{text-align:right;font-variant-numeric:tabular-nums;min-width:112px}
td.figure div{position:relative;padding-bottom:4px;line-height:1.5}
td.figure i{font-style:normal}
td.figure small,td.figure em{font-style:normal;font-size:11px;color:var(--soft);margin-left:6px;display:inline-block;
 min-width:42px}
td.figure em.bad{color:var(--bad);font-weight:600}
td.figure em.more{color:var(--more)}
td.figure s{position:absolute;left:0;right:0;bottom:0;height:3px;display:flex;background:var(--track);
 border-radius:2px;overflow:hidden;text-decoration:none}
td.figure u{display:block;height:100%;background:var(--need);text-decoration:none}
td.figure u.work{background:var(--work)}
td.figure u.excess{background:var(--excess)}
.legend dl{display:grid;grid-template-columns:max-content 1fr;gap:5px 18px;margin:0}
.legend dt{font-weight:600}
.legend dd{margin:0;color:var(--soft);max-width:100ch}
.comment{color:var(--comment);font-style:italic}.string{color:var(--string)}.cuda{color:var(--cuda)}
.keyword{color:var(--keyword)}.number{color:var(--number)}.directive{color:var(--directive)}
@media print{body{background:#fff;padding:0}#theme{display:none}th{position:static}}
"""
)
SCRIPT = """
const root = document.documentElement;
document.getElementById("theme").onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
};
for (const button of document.querySelectorAll(".bar button")) {
  button.onclick = () => {
    const short = button.closest(".file").querySelector("table").classList.toggle("kernel");
    button.textContent = short ? "Show the whole file" : "Show the kernel";
  };
}
for (const head of document.querySelectorAll("th[data-sort]")) {
  head.onclick = () => {
    const key = head.dataset.sort, body = head.closest("table").tBodies[0];
    const back = key === "line" || head.classList.contains("sorted");
    const value = row => Number(row.dataset[back ? "line" : key] ?? -1);
    const rows = [...body.rows].sort((a, b) => back ? value(a) - value(b) : value(b) - value(a));
    for (const other of head.parentNode.children) other.classList.remove("sorted");
    if (!back) head.classList.add("sorted");
    body.append(...rows);
  };
}
"""
