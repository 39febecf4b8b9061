"""The style and the script of a profile's page: sorting by a column."""

from __future__ import annotations

from warpwright.editor.page_theme import THEME, THEME_SCRIPT

STYLE = (
    THEME
    + """
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
.scrolled{overflow:auto;max-height:92vh}
table.kernel tr.outside{display:none}
tr.went{background:var(--badbg)}tr.came{background:var(--measuredbg)}
table{border-collapse:collapse;width:100%;font-size:12.5px}
th{position:sticky;top:0;z-index:1;background:var(--card);text-align:right;font-weight:500;color:var(--soft);
 padding:8px 12px;box-shadow:inset 0 1px var(--line),inset 0 -1px var(--line);white-space:nowrap}
th.source{text-align:left;width:99%;min-width:360px}
th[data-sort]{cursor:pointer}
th[data-sort]:hover{color:var(--ink)}
th.sorted::after{content:" ▾"}
td{padding:1px 12px;vertical-align:top;white-space:nowrap}
td.n{text-align:right;color:var(--soft);user-select:none;padding-right:8px;position:sticky;left:0;background:var(--card)}
th.n{left:0;z-index:2}
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
td.figure svg{position:absolute;left:0;bottom:0;width:100%;height:3px;background:var(--track);border-radius:2px}
rect.need{fill:var(--need)}rect.work{fill:var(--work)}rect.excess{fill:var(--excess)}
.legend dl{display:grid;grid-template-columns:max-content 1fr;gap:5px 18px;margin:0}
.legend dt{font-weight:600}
.legend dd{margin:0;color:var(--soft);max-width:100ch}
.comment{color:var(--comment);font-style:italic}.string{color:var(--string)}.cuda{color:var(--cuda)}
.keyword{color:var(--keyword)}.number{color:var(--number)}.directive{color:var(--directive)}
@media(max-width:820px){body{padding:14px 12px 32px}th,td{padding:1px 6px}th{white-space:normal}
th.source{min-width:190px}td.figure{min-width:78px}td.figure small,td.figure em{min-width:0}}
@media print{body{background:#fff;padding:0}#theme{display:none}th,td.n{position:static}.scrolled{max-height:none}}
"""
)
SCRIPT = (
    THEME_SCRIPT
    + """
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
)
