/**
 * Creates `index.html` of a bundle: its sections with links to their files. The page has no scripts and loads no other
 * files.
 */
import { bytesText } from '../../base/text/bytes-text.ts';
import type { BundleReport, EntryReport, SectionReport } from '../port.ts';

const STYLE =
  'body{font:15px/1.5 sans-serif;margin:2em auto;max-width:70em;padding:0 1em}table{border-collapse:collapse;width:100%}' +
  'td,th{text-align:left;vertical-align:top;border-bottom:1px solid #ccc;padding:.2em .6em}td.n{text-align:right;white-space:nowrap}' +
  '.p{color:#a00}h2{margin-bottom:.2em}';

export function indexPage({ host, version, time, since, knownSecrets, sections }: BundleReport): string {
  const files = sections.flatMap(({ entries }) => entries);
  const bytes = files.reduce((sum, each) => sum + each.bytes, 0);
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Support bundle of ${escapeHtml(host)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Support bundle of ${escapeHtml(host)}</h1>
<table>
${row('Time', time)}${row('Logs since', since)}${row('hyperedge', version)}${row('Files', `${files.length} with ${bytesText(bytes, ' ')}`)}${row('Known secrets', `${knownSecrets} values were searched and removed`)}</table>
<h2>Sections</h2>
<ul>
${sections.map(({ id, title, problems }) => `<li><a href="#${anchor(id)}">${escapeHtml(title)}</a>${problems.length === 0 ? '' : ` <span class="p">incomplete</span>`}</li>\n`).join('')}</ul>
${sections.map(sectionHtml).join('')}</body>
</html>
`;
}

function sectionHtml({ id, title, tookMs, entries, problems }: SectionReport): string {
  return `<h2 id="${anchor(id)}">${escapeHtml(title)}</h2>
${problems.map((each) => `<p class="p">${escapeHtml(each)}</p>\n`).join('')}<table>
<tr><th>File</th><th>Size</th><th>Cut</th></tr>
${entries.map(entryHtml).join('')}</table>
<p>Collected in ${(tookMs / 1000).toFixed(1)} s.</p>
`;
}

const entryHtml = ({ path, bytes, cut }: EntryReport): string =>
  `<tr><td><a href="${path.split('/').map(encodeURIComponent).join('/')}">${escapeHtml(path)}</a></td><td class="n">${bytesText(bytes, ' ')}</td><td class="p">${escapeHtml(cut ?? '')}</td></tr>\n`;

const row = (name: string, value: string): string =>
  `<tr><th>${escapeHtml(name)}</th><td>${escapeHtml(value)}</td></tr>\n`;

const anchor = (id: string): string => `section-${id.replaceAll(/[^a-z0-9-]/gi, '-')}`;

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
