/**
 * `npm run check:language`: comments, test titles and documents use plain technical English. Prints each line with an
 * expression that readers have to decode; exit code 1 when there is one. Rewrite the sentence; do not only replace the
 * word.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Rule {
  readonly advice: string;
  readonly pattern: RegExp;
  /** The rule applies to the beginning of a comment only. */
  readonly isOpener?: boolean;
}

const RULES: readonly Rule[] = [
  {
    advice: 'begin with a noun phrase or a third-person verb',
    pattern: /^(?:What|Who|Whom|Whose|Of|Those|Nothing|None|Nobody|Else|But|And|Not|Neither|Such|Only so)\b/,
    isOpener: true,
  },
  {
    advice: 'name the component, client or object',
    pattern: /\b(?:(?:some|any|every)(?:body|one)|nobody|whoever|whom|strangers?)\b/i,
  },
  {
    advice: 'use report, return, request, query, specify, trust or receive',
    pattern:
      /\b(?:says?|said|saying|tells?|told|telling|asks?|asked|asking|believes?|believed|wishes|hears?|heard|speaks?|promises?|is content|talks? to)\b/i,
  },
  {
    advice: 'use the current term: continue, delete, release, transfer, inspect, validate, finish',
    pattern:
      /\b(?:anew|likewise|thereby|hence|thus|in vain|once more|for good|for ever|mend(?:s|ed|ing)?|rumou?rs?|affairs?|no business|at its root|shall|whither|ere|be it|as well it|comes? to nothing|goes? on|gone|has come|is begun|let in|looked? (?:into|at)|looks? after|puts? together|takes? away|gives? back|hands? over|is over)\b/i,
  },
];
const ROOT = join(import.meta.dirname, '../..');
const LINTED = /^(?:(?:src|test|build|docs)\/.*\.(?:tsx?|mjs|md)|(?:README|CONTRIBUTING|CHANGELOG)\.md)$/;
/** Texts of other projects, and this file's own list. */
const FOREIGN = /\/generated\/|\.generated\.|^test\/style\/language\.ts$/;
const TITLE = /^\s*(?:await )?(?:t\.)?(?:test|it|describe|suite)\(\s*(['"`])(.*?)\1/;

interface Prose {
  readonly line: number;
  readonly text: string;
  readonly isOpening: boolean;
}

const withoutCode = (text: string): string => text.replaceAll(/`[^`]*`/g, '');

function* proseOfPage(lines: readonly string[]): Generator<Prose> {
  let isBlock = false;
  for (const [index, line] of lines.entries()) {
    if (/^\s*```/.test(line)) isBlock = !isBlock;
    else if (!isBlock) yield { line: index + 1, text: withoutCode(line), isOpening: false };
  }
}

function* proseOfSource(lines: readonly string[]): Generator<Prose> {
  let isBlock = false;
  for (const [index, line] of lines.entries()) {
    const place = { line: index + 1 };
    const title = TITLE.exec(line)?.[2];
    if (title !== undefined) yield { ...place, text: title, isOpening: false };
    const opens = /^\s*\/\*/.test(line);
    if (opens || isBlock) {
      const text = withoutCode(line.replace(/^\s*(?:\/\*\*?|\*(?!\/))?\s?/, '').replace(/\*\/.*$/, ''));
      yield { ...place, text, isOpening: opens };
      isBlock = !line.includes('*/');
      continue;
    }
    const comment = /(^|\s)\/\/ ?(.*)$/.exec(line);
    if (comment === null || line.slice(0, comment.index).endsWith(':')) continue;
    yield { ...place, text: withoutCode(comment[2] ?? ''), isOpening: /^\s*\/\//.test(line) };
  }
}

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => LINTED.test(path) && !FOREIGN.test(path) && existsSync(join(ROOT, path)));
let count = 0;
for (const file of files) {
  const lines = readFileSync(join(ROOT, file), 'utf8').split('\n');
  for (const { line, text, isOpening } of file.endsWith('.md') ? proseOfPage(lines) : proseOfSource(lines))
    for (const { advice, pattern, isOpener } of RULES) {
      const found = isOpener === true && !isOpening ? null : pattern.exec(text.trim());
      if (found === null) continue;
      count += 1;
      console.log(`${file}:${line}: "${found[0]}": ${advice}: ${text.trim()}`);
      break;
    }
}
console.log(`${count} lines to rewrite in ${files.length} files`);
process.exit(count === 0 ? 0 : 1);
