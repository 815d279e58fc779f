/**
 * `npm run check:docs`: every path, link, command and flag that documents and comments name exists. Prints each broken
 * reference with its place; exit code 1 when there is one.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, matchesGlob, normalize } from 'node:path';
import { COMMANDS } from '../../src/cli/commands/table.ts';
import { isClientVerb } from '../../src/cli/invocation.ts';
import { chooseVerb, GLOBAL_FLAGS } from '../../src/kubectl/run.ts';
import { VERBS } from '../../src/kubectl/verbs.ts';

const ROOT = join(import.meta.dirname, '../..');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)));
const directories = new Set(tracked.flatMap((path) => ancestors(path)));
const names = new Set(tracked.map((path) => basename(path)));
const scripts = new Set(
  Object.keys((JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object }).scripts),
);
/** Paths that a build or an installation creates, and names of files in other repositories. */
const CREATED = /^(?:src\/api\/schema\/generated|test\/e2e\/\.)/;
const TOP = '(?:src|test|docs|build|systemd|examples)';
const PATH = new RegExp(String.raw`(?<![\w./@-])${TOP}/[\w.{},*/-]*[\w*}/]`, 'g');
/** Paths in repositories of Kubernetes and of OpenShift's machine-config operator that documents name. */
const UPSTREAM = /^(?:test\/e2e-single-node|test\/utils\/image\/manifest\.go|docs\/MachineConfigDaemon\.md)$/;
/** Decisions may be named by their number. */
const DECISION = /^docs\/decisions\/\d{4}$/;
/** A change log describes the past. */
const documents = tracked.filter((path) => path.endsWith('.md') && path !== 'CHANGELOG.md');
const sources = tracked.filter((path) => /^(?:src|test|build)\/.*\.ts$/.test(path));
const broken: string[] = [];

function ancestors(path: string): string[] {
  const parent = dirname(path);
  return parent === '.' ? [] : [parent, ...ancestors(parent)];
}

function exists(path: string): boolean {
  const clean = path.replace(/\/$/, '');
  if (CREATED.test(clean) || directories.has(clean) || existsSync(join(ROOT, clean))) return true;
  if (DECISION.test(clean)) return tracked.some((each) => each.startsWith(`${clean}-`));
  if (!/[*{]/.test(clean)) return false;
  return [...tracked, ...directories].some((each) => matchesGlob(each, clean));
}

function checkPaths(place: string, text: string): void {
  for (const [path] of text.matchAll(PATH))
    if (!exists(path) && !UPSTREAM.test(path) && !/\bx\.test\.ts$/.test(path))
      broken.push(`${place}: ${path} does not exist`);
}

function checkLinks(place: string, page: string, line: string): void {
  for (const [, target = ''] of line.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : normalize(join(dirname(page), path));
    if (!exists(file)) broken.push(`${place}: the link ${target} leads to no file`);
    else if (anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).has(anchor))
      broken.push(`${place}: the link ${target} leads to no heading`);
  }
}

/** Names of headings as GitHub derives them. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = readFileSync(join(ROOT, page), 'utf8').matchAll(/^#+ +(.*)$/gm);
  return new Set(
    [...headings].map(([, title = '']) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  );
}

/** `code`: a code span, or a line of a code block. */
function checkCode(place: string, code: string): void {
  for (const [, script = ''] of code.matchAll(/\bnpm run (?:-s )?([a-z][\w:.-]*)/g))
    if (!scripts.has(script) && !(script.endsWith(':') && [...scripts].some((each) => each.startsWith(script))))
      broken.push(`${place}: there is no script ${script}`);
  // A bare file name in a document names a file of this repository.
  if (/^[\w-]+\.(?:test\.)?ts$/.test(code) && !names.has(code)) broken.push(`${place}: there is no file ${code}`);
  // A line of output or of a log can begin with the same word.
  const [, call] = /^\s*(?:[$#] )?(?:sudo )?(?:\.\/)?hyperedge ((?!already\b)[a-z-]+(?: [^|;&#]*)?)/.exec(code) ?? [];
  if (call !== undefined) checkCommand(place, call);
}

function checkCommand(place: string, call: string): void {
  const words = call.trim().split(/\s+/);
  const [first = '', second = ''] = words;
  if (first.startsWith('-')) return;
  if (first === 'kubectl' || isClientVerb(words)) {
    checkVerb(place, first === 'kubectl' ? words.slice(1) : words);
    return;
  }
  const command =
    COMMANDS.find(({ name }) => name === `${first} ${second}`) ?? COMMANDS.find(({ name }) => name === first);
  if (command === undefined) {
    // A group, such as `hyperedge image`, lists its commands.
    const isGroup = COMMANDS.some(({ name }) => name.startsWith(`${first} `));
    if (first !== 'help' && !(isGroup && (second === '' || /^[^a-z]/.test(second))))
      broken.push(`${place}: there is no command hyperedge ${first} ${second}`.trimEnd());
    return;
  }
  if (command.arguments === 'own') return;
  for (const word of words) {
    const [, flag] = /^\[?--([a-z][a-z-]*)/.exec(word) ?? [];
    if (flag === undefined || ['help', 'verbose'].includes(flag) || Object.hasOwn(command.flags, flag)) continue;
    broken.push(`${place}: hyperedge ${command.name} has no flag --${flag}`);
  }
}

/** A call of the built-in client. Words after `--` belong to the command in the container. */
function checkVerb(place: string, words: readonly string[]): void {
  const [first = ''] = words;
  if (/^(?:…|--help|options)?$/.test(first)) return;
  const chosen = chooseVerb(VERBS, words);
  if (chosen === undefined) {
    broken.push(`${place}: there is no verb hyperedge ${first}`);
    return;
  }
  const { verb, rest } = chosen;
  const end = rest.indexOf('--');
  for (const word of end < 0 ? rest : rest.slice(0, end)) {
    const [, flag] = /^\[?--([a-z][a-z-]*)/.exec(word) ?? [];
    if (flag === undefined || Object.hasOwn({ ...GLOBAL_FLAGS, ...verb.flags }, flag)) continue;
    broken.push(`${place}: hyperedge ${verb.name} has no flag --${flag}`);
  }
}

for (const page of documents) {
  let isBlock = false;
  for (const [index, line] of readFileSync(join(ROOT, page), 'utf8').split('\n').entries()) {
    const place = `${page}:${index + 1}`;
    if (/^\s*```/.test(line)) isBlock = !isBlock;
    if (!isBlock) checkLinks(place, page, line);
    checkPaths(place, line.replaceAll(/\]\([^)]*\)/g, ']').replaceAll(/https?:\/\/\S+/g, ''));
    const codes = isBlock ? [line] : [...line.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
    for (const code of codes) checkCode(place, code);
  }
}
for (const source of sources)
  for (const [index, line] of readFileSync(join(ROOT, source), 'utf8').split('\n').entries()) {
    const [, comment] = /^\s*(?:\/\*\*?|\*|\/\/)(.*)$/.exec(line) ?? [];
    // A comment that cites upstream contains paths of upstream's repositories, which do not exist here.
    if (comment !== undefined && !/Source|upstream|kubernetes|etcd-io/i.test(comment))
      checkPaths(`${source}:${index + 1}`, comment.replaceAll(/https?:\/\/\S+/g, ''));
  }
for (const each of broken) console.log(each);
console.log(`${broken.length} broken references`);
process.exit(broken.length === 0 ? 0 : 1);
