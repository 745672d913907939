"""Style sheet of the HTML page: light or dark, narrow or wide, and printed.

Only the text of distant cases is left out of the layout (`content-visibility`). The heads of cases stay, for screen
readers and the tab key.
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --muted: #59636e; --line: #d1d9e0; --good: #1a7f37;
  --bad: #c11c28; --odd: #8a5a00; --info: #0958c8; --panel: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --muted: #9198a1; --line: #3d444d;
  --good: #3fb950; --bad: #ff7b72; --odd: #d8a030; --info: #6cb0ff; --panel: #151b23; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0 0 .3rem; } p { margin: .2rem 0; color: var(--muted); overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 1rem 0; display: block; width: fit-content; max-width: 100%;
  overflow-x: auto; }
th, td { text-align: right; padding: .2rem .8rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; background: var(--panel); }
summary { border-radius: 6px; padding: .45rem .8rem; cursor: pointer; overflow-wrap: anywhere; }
summary:focus-visible { outline: 2px solid var(--info); } summary b { font-weight: 600; }
summary i { font-style: normal; color: var(--muted); margin-left: .6rem; }
pre { content-visibility: auto; contain-intrinsic-size: auto 20rem; margin: 0; padding: .7rem .8rem; overflow-x: auto;
  border-top: 1px solid var(--line); background: var(--paper);
  font: 13px/1.45 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; border-radius: 0 0 6px 6px; }
.heading, .strong, [class$="-strong"] { font-weight: 600; }
.muted, .hint, .rule, .fold, .label { color: var(--muted); } .name { color: var(--info); }
[class^="status-passed"] { color: var(--good); }
[class^="status-failed"], .diff-missing, .notice-error { color: var(--bad); }
.diff-extra { color: var(--good); } [class^="status-error"], .diff-moved, .notice-warning { color: var(--odd); }
[class^="status-not-evaluated"] { color: var(--odd); } [class^="status-cancelled"] { color: var(--muted); }
.said { display: block; color: var(--info); font-weight: 600; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 1rem 0 .3rem; } h2 + table { margin-top: 0; }
td:first-child { overflow-wrap: anywhere; min-width: 9rem; } td + td { white-space: nowrap; }
.bars td:first-child { max-width: 17rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bars p { max-width: 26rem; }
.charts { display: flex; flex-wrap: wrap; gap: 0 1.5rem; margin-bottom: 1rem; }
section { max-width: 100%; } .whole { flex-basis: 100%; }
section table { margin: 0; font-size: .9em; }
svg { vertical-align: middle; max-width: 100%; } rect { fill: var(--muted); } rect.some { fill: var(--info); }
rect.good { fill: var(--good); } rect.bad { fill: var(--bad); } svg line { stroke: var(--ink); stroke-dasharray: 3 2; }
svg.framed { border-bottom: 1px solid var(--muted); }
.cases { max-height: 36rem; overflow: auto; margin: 0 0 1rem; } .cases table { display: table; margin: 0; }
.cases thead th { position: sticky; top: 0; background: var(--paper); }
.cases a { color: inherit; text-decoration: none; }
.cases a:hover, .cases a:focus-visible { text-decoration: underline; }
.cases td:first-child { min-width: 12rem; max-width: 26rem; }
th button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
th button:disabled { cursor: auto; } th button:focus-visible { outline: 2px solid var(--info); }
th[aria-sort] button { color: var(--info); } th[aria-sort="ascending"] button::after { content: " ▴"; }
th[aria-sort="descending"] button::after { content: " ▾"; } :target { outline: 2px solid var(--info); }
@media (max-width: 40rem) { body { margin: 1rem auto; padding: 0 .6rem; } th, td { padding: .2rem .4rem; }
  pre { font-size: 11px; padding: .5rem; } section svg { max-width: 6rem; } svg.framed { max-width: 100%; }
  table { font-size: .85em; } .bars td:first-child { max-width: 11rem; } }
@media print { .cases { max-height: none; overflow: visible; }
  details:not([open]), tr, section { break-inside: avoid; } h2, summary { break-after: avoid; }
  details details:not([open]) { display: none; } body { margin: 0; max-width: none; font-size: 11px; }
  pre { content-visibility: visible; font-size: 8px; overflow: visible; white-space: pre-wrap; }
  rect, b, span { print-color-adjust: exact; } }
"""
