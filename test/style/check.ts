/**
 * Style check of `npm run check`: banned words, lines of at most 120 columns, files of at most 500 lines, functions of
 * at most 120, no casts that the compiler does not check. Prints every violation with its place; the exit code is 1 if
 * there is any.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const ROOT = join(import.meta.dirname, '../..');
const MAX_COLUMNS = 120;
const MAX_FILE_LINES = 500;
const MAX_FUNCTION_LINES = 120;
/** Words that readers do not understand immediately. docs/glossary.md has the terms to use instead. */
const BANNED = /\b(?:nobody|whoever|mend(?:s|ed|ing)?|anew|told|rumou?rs?)\b/i;
/** Generated files, whose text comes from upstream or is recorded output. */
const GENERATED = /\/generated\/|\/golden\/|\.golden$/;

const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => path !== '' && !GENERATED.test(path));

/** Known violations with their number of lines. They may shrink; no new ones may be added. */
const KNOWN: Readonly<Record<string, number>> = {};

/** Pure code: time, randomness and I/O are arguments. */
const PURE = [
  /^src\/(?:base|api|(?:.*\/)?core)\//,
  /^src\/controllers\/(?!framework\/)[^/]+\/[^/]+\/(?!(?:[a-z-]+-)?(?:controller|port)\.ts$)/,
];
const IMPURE_GLOBALS = new Set([
  'clearInterval',
  'clearTimeout',
  'console',
  'crypto',
  'fetch',
  'performance',
  'process',
  'setImmediate',
  'setInterval',
  'setTimeout',
]);
const IMPURE_MEMBERS = new Set(['Date.now', 'Math.random']);
/**
 * Functions that exist in one module only: the pattern of their code, the module, and other files that may contain the
 * pattern.
 */
const SHARED: readonly (readonly [pattern: RegExp, module: string, others?: RegExp])[] = [
  [/\.toISOString\(\)\.(?:replace\(|slice\(0, ?10\)|slice\(0, ?19\)\}Z)/, 'src/base/time/timestamps.ts'],
  [/createHash\('sha256'\)\.update\(.*\)\.digest\('(?:hex|base64|base64url)'\)/, 'src/wire/digest.ts'],
  [/`# (?:HELP|TYPE) \$\{name\} \$\{/, 'src/base/metrics/metrics-text.ts', /^src\/apiserver\//],
  [/\?\.status === \S+ \? \(?\w+\.lastTransitionTime/, 'src/api/meta/conditions.ts'],
  // The excepted files clear sets, which are cheap to fill again.
  [
    /\.size >= MAX_\w+\) (?:this\.)?#?\w+\.clear\(\)|\.delete\((?:this\.)?#?\w+\.keys\(\)\.next\(\)/,
    'src/base/bounded-map.ts',
    /^src\/(?:openshift\/oauth\/authorization\/tokens|apiserver\/authorization\/authorization)\.ts$/,
  ],
];
/** Pattern of code that drops errors. `ignore` of src/base/errors.ts takes a reason instead. */
const SWALLOWED = /\.catch\(\(\) => \{\s*\}\)|catch(?: \(\w+\))? \{\s*\}/;
/** Places of casts that the compiler does not check, with their number. At most ten in total. */
const UNCHECKED_CASTS: Readonly<Record<string, number>> = {
  // Values of a table by the table's names.
  'src/api/podspec/fields/field.ts': 2,
  // The compatibility API of HTTP/2 has the members of HTTP/1.1 that are used, but no common type.
  'src/apiserver/io/http/listener.ts': 2,
  // The key of an informer identifies its type.
  'src/client/informers/informer-factory.ts': 1,
  // Merged fields of two valid configs.
  'src/openshift/machine-config/core/ignition/merge.ts': 1,
  // The declarations of node-forge lack the options.
  'src/pki/der.ts': 1,
  // Internals of tar-stream.
  'src/runtime/images/layers/extended-headers.ts': 1,
};
/** Caches, outputs and logs that belong to a machine and not to the repository. */
const OUTPUT = /(?:^|\/)\.(?:kube|cache|npm|tap)\/|(?:^|\/)(?:dist|node_modules|coverage)\/|\.(?:log|db|sqlite|tar)$/;

const violations: string[] = [];
const read = (path: string): string => {
  try {
    return readFileSync(join(ROOT, path), 'utf8');
  } catch {
    // The file is deleted and the deletion is not committed yet.
    return '';
  }
};

for (const path of tracked)
  if (OUTPUT.test(path)) violations.push(`${path}: a cache or an output; remove it from the repository`);
lockWithoutHashes();
for (const path of tracked.filter((each) => /^(?:src|docs)\/.*\.(?:ts|md)$|^[A-Z]+\.md$/.test(each))) {
  const lines = read(path).split('\n');
  if (path.startsWith('src/') && lines.length - 1 > (KNOWN[path] ?? MAX_FILE_LINES))
    violations.push(`${path}: ${lines.length - 1} lines; split it, at most ${MAX_FILE_LINES}`);
  for (const [index, line] of lines.entries()) {
    const place = `${path}:${index + 1}`;
    const banned = BANNED.exec(line);
    if (banned !== null) violations.push(`${place}: "${banned[0]}"; use the field's word, see docs/glossary.md`);
    for (const [pattern, module, others] of SHARED)
      if (path.startsWith('src/') && path !== module && others?.test(path) !== true && pattern.test(line))
        violations.push(`${place}: a copy of what ${module} does; use that module`);
    if (path.endsWith('.ts') && SWALLOWED.test(line))
      violations.push(`${place}: an error is ignored without a reason; handle it, or use ignore(reason)`);
    if ([...line].length > MAX_COLUMNS && isProse(path, line))
      violations.push(`${place}: ${[...line].length} columns; at most ${MAX_COLUMNS}`);
  }
}
for (const path of tracked.filter((each) => /^src\/.*\.ts$/.test(each))) {
  longFunctions(path);
  if (PURE.some((each) => each.test(path))) impureGlobals(path);
  uncheckedCasts(path);
  castsOfJson(path);
}
for (const path of tracked.filter((each) => /^src\/.*\.tsx?$/.test(each))) hardExpressions(path);

/** npm omits hashes of optional packages of other platforms when it derives the lock from an installed tree. */
function lockWithoutHashes(): void {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { integrity?: string }> };
  for (const [path, { integrity }] of Object.entries(packages))
    if (path !== '' && integrity === undefined)
      violations.push(`package-lock.json: ${path} has no integrity hash; take it from npm view PACKAGE dist.integrity`);
}

/** The formatter wraps code, but never comments and text. */
function isProse(path: string, line: string): boolean {
  if (path.endsWith('.md')) return !/^\s*(?:https?:|\[)/.test(line);
  return /^\s*(?:\*|\/\/|\/\*)/.test(line) && !/https?:\/\//.test(line);
}

/** Globals with time, randomness or I/O. A name that the file declares, such as a parameter, is not a global. */
function impureGlobals(path: string): void {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true);
  const declared = new Set<string>();
  const found: [name: string, node: ts.Node][] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) {
      const { parent } = node;
      const member = ts.isPropertyAccessExpression(parent) && parent.expression === node;
      const isName = 'name' in parent && parent.name === node;
      if (isName && !ts.isPropertyAccessExpression(parent)) declared.add(node.text);
      else if (member && IMPURE_MEMBERS.has(`${node.text}.${parent.name.text}`))
        found.push([`${node.text}.${parent.name.text}`, node]);
      else if (!isName && !ts.isTypeNode(parent) && IMPURE_GLOBALS.has(node.text)) found.push([node.text, node]);
    }
    if (ts.isNewExpression(node) && node.expression.getText(source) === 'Date' && node.arguments?.length === 0)
      found.push(['new Date()', node]);
    ts.forEachChild(node, visit);
  };
  visit(source);
  for (const [name, node] of found) {
    if (declared.has(name)) continue;
    const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
    violations.push(`${path}:${line}: ${name} in pure code; take it as an argument`);
  }
}

/** Casts of parsed JSON, whose fields nothing has checked. */
function castsOfJson(path: string): void {
  if (/\bJSON\.parse\([^;]*?\)\)? as (?!unknown\b)/.test(read(path)))
    violations.push(`${path}: a cast after JSON.parse; use decodeJson of src/base/decode.ts with a schema`);
}

/** Casts that the compiler does not check: through `unknown` or `object`, and to `never`. */
function uncheckedCasts(path: string): void {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest);
  const found: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isAsExpression(node)) {
      const through = ts.isAsExpression(node.expression) ? node.expression.type.kind : undefined;
      const isUnchecked =
        node.type.kind === ts.SyntaxKind.NeverKeyword ||
        through === ts.SyntaxKind.UnknownKeyword ||
        through === ts.SyntaxKind.ObjectKeyword;
      if (isUnchecked) found.push(node);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  if (found.length <= (UNCHECKED_CASTS[path] ?? 0)) return;
  for (const node of found) {
    const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
    violations.push(`${path}:${line}: a cast through unknown or to never; declare the types`);
  }
}

/**
 * Expressions that save lines and cost readers time: an object literal that is spread into another one, and conditional
 * expressions with more than two conditions or with one inside of another's test or first branch.
 */
function hardExpressions(path: string): void {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest);
  const report = (node: ts.Node, problem: string): void => {
    const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
    violations.push(`${path}:${line}: ${problem}`);
  };
  const conditionalIn = (node: ts.Expression): ts.ConditionalExpression | undefined => {
    if (ts.isParenthesizedExpression(node)) return conditionalIn(node.expression);
    return ts.isConditionalExpression(node) ? node : undefined;
  };
  const visit = (node: ts.Node): void => {
    if (ts.isSpreadAssignment(node) && ts.isObjectLiteralExpression(node.expression))
      report(node, 'a spread of an object literal; write its properties directly');
    if (ts.isConditionalExpression(node)) {
      const second = conditionalIn(node.whenFalse);
      const isLong = second !== undefined && conditionalIn(second.whenFalse) !== undefined;
      if (isLong || (conditionalIn(node.condition) ?? conditionalIn(node.whenTrue)) !== undefined)
        report(node, 'nested conditional expressions; use statements, a table or a named part');
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}

function longFunctions(path: string): void {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest);
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const first = source.getLineAndCharacterOfPosition(node.getStart(source)).line;
      const last = source.getLineAndCharacterOfPosition(node.end).line;
      if (last - first + 1 > (KNOWN[`${path} function`] ?? MAX_FUNCTION_LINES))
        violations.push(`${path}:${first + 1}: a function of ${last - first + 1} lines; at most ${MAX_FUNCTION_LINES}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}

for (const violation of violations) console.log(violation);
process.exitCode = violations.length === 0 ? 0 : 1;
