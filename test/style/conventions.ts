/**
 * `npm run check:pages`: files by which a project is presented are complete and consistent. Contacts agree, forms of
 * issues are valid, each page is linked from the README, and YAML and JSON in pages can be parsed. Bootstrap files in
 * pages are accepted by the product. Prints each problem; exit code 1 when there is one.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { bootstrapField } from '../../src/host/config/bootstrap.ts';
import { parseConfig } from '../../src/wire/strict-yaml.ts';

const ROOT = join(import.meta.dirname, '../..');
const problems: string[] = [];
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
}).split('\n');

interface Manifest {
  readonly version: string;
  readonly keywords?: readonly string[];
  readonly repository?: { readonly url?: string };
  readonly bugs?: { readonly email?: string };
}

/**
 * Checks that the files that name a contact name the one of package.json, and that SECURITY.md lists the current
 * series.
 */
function checkContacts(): void {
  const { version, keywords = [], repository, bugs } = JSON.parse(read('package.json')) as Manifest;
  if (keywords.length === 0) problems.push('package.json: keywords are missing');
  if (repository?.url === undefined) problems.push('package.json: repository.url is missing');
  const contact = bugs?.email ?? '';
  if (contact === '') problems.push('package.json: bugs.email is missing');
  for (const path of ['SECURITY.md', 'CODE_OF_CONDUCT.md', 'build/release/package-files.ts'])
    if (!read(path).includes(contact)) problems.push(`${path}: does not name the contact ${contact} of package.json`);
  const series = `${version.split('.')[0]}.x`;
  if (!read('SECURITY.md').includes(`| the latest ${series} release | yes |`))
    problems.push(`SECURITY.md: does not list ${series} as supported`);
}

const FORM_TYPES = new Set(['markdown', 'textarea', 'input', 'dropdown', 'checkboxes']);

interface FormItem {
  readonly type?: string;
  readonly id?: string;
  readonly attributes?: { readonly label?: string; readonly value?: string; readonly options?: unknown };
}

/** Source: GitHub's syntax for issue forms. */
function checkForm(path: string): void {
  const form = parse(read(path)) as { name?: string; description?: string; body?: readonly FormItem[] } | null;
  if (!form?.name || !form.description) problems.push(`${path}: name and description are required`);
  const ids = new Set<string>();
  for (const [index, { type = '', id, attributes }] of (form?.body ?? []).entries()) {
    const place = `${path}: body[${index}]`;
    if (!FORM_TYPES.has(type)) problems.push(`${place}: type "${type}" does not exist`);
    if (type === 'markdown' ? !attributes?.value : !attributes?.label)
      problems.push(`${place}: ${type === 'markdown' ? 'value' : 'label'} is missing`);
    if (id !== undefined && (ids.has(id) || !/^[A-Za-z0-9_-]+$/.test(id))) problems.push(`${place}: id "${id}"`);
    if (id !== undefined) ids.add(id);
  }
  if (!(form?.body ?? []).some(({ type }) => type !== 'markdown')) problems.push(`${path}: the form has no field`);
}

/** Pages below `docs` that no link of the README leads to, except decisions and runbooks, which have lists. */
function checkPages(): void {
  const readme = read('README.md');
  for (const path of tracked.filter((each) => /^docs\/[^/]+\.md$/.test(each)))
    if (!readme.includes(`](${path})`)) problems.push(`README.md: no link leads to ${path}`);
}

/** Blocks of a page by language, with the line of the first fence. Text with an ellipsis is not complete. */
function* blocksOf(page: string): Generator<{ language: string; text: string; line: number }> {
  const lines = read(page).split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const [, indent = '', language] = /^( *)```(yaml|json)$/.exec(lines[at] ?? '') ?? [];
    if (language === undefined) continue;
    const end = lines.indexOf(`${indent}\`\`\``, at + 1);
    const text = lines.slice(at + 1, end).map((line) => line.slice(indent.length));
    yield { language, text: text.join('\n'), line: at + 1 };
    at = end;
  }
}

function checkBlocks(page: string): void {
  for (const { language, text, line } of blocksOf(page)) {
    if (text.includes('…')) continue;
    const place = `${page}:${line}`;
    try {
      if (language === 'json') JSON.parse(text);
      for (const document of parseAllDocuments(text)) {
        const [error] = document.errors;
        if (error !== undefined) throw error;
      }
      if (/^kind: Bootstrap$/m.test(text)) parseConfig(text, place, bootstrapField);
    } catch (error) {
      problems.push(`${place}: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`);
    }
  }
}

checkContacts();
for (const path of tracked.filter((each) => /^\.github\/ISSUE_TEMPLATE\/(?!config\.)[^/]+\.yml$/.test(each)))
  checkForm(path);
checkPages();
for (const page of tracked.filter((each) => each.endsWith('.md') && each !== 'CHANGELOG.md')) checkBlocks(page);
for (const problem of problems) console.log(problem);
console.log(`${problems.length} problems of the project's pages`);
process.exit(problems.length === 0 ? 0 : 1);
