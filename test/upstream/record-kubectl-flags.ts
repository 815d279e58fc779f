/**
 * Records the verbs and flags of kubectl 1.36 from its help texts:
 *
 *   node test/upstream/record-kubectl-flags.ts PATH-OF-KUBECTL
 *
 * Writes `test/kubectl/golden/flags.json`, with which `test/kubectl/flags.test.ts` compares the table of verbs.
 */
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const [kubectl] = process.argv.slice(2);
if (kubectl === undefined) {
  console.error('usage: record-kubectl-flags.ts PATH-OF-KUBECTL');
  process.exit(2);
}
const run = (...args: string[]): string => execFileSync(kubectl, args, { encoding: 'utf8' });

/** Names of a section such as `Available Commands:`, whose lines have two spaces before the name. */
function verbsIn(help: string): string[] {
  const names: string[] = [];
  let isInside = false;
  for (const line of help.split('\n')) {
    if (/^\S.*Commands.*:$/.test(line)) isInside = true;
    else if (/^\S/.test(line)) isInside = false;
    else if (isInside) names.push(...(/^ {2}([a-z][\w-]*) /.exec(line)?.slice(1) ?? []));
  }
  return names;
}

/** `-f, --filename=[]:` becomes `filename: 'f'`. The value of a flag without a short name is empty. */
const flagsIn = (help: string): Record<string, string> =>
  Object.fromEntries(
    [...help.matchAll(/^ {4}(?:-(\w), )?--([\w-]+)=/gm)].map(([, short = '', name = '']) => [name, short]),
  );

const verbs: Record<string, Record<string, string>> = {};
function visit(words: readonly string[]): void {
  const help = run(...words, '--help');
  if (words.length > 0) verbs[words.join(' ')] = flagsIn(help);
  for (const name of verbsIn(help)) visit([...words, name]);
}
visit([]);
const { clientVersion } = JSON.parse(run('version', '--client', '-o', 'json'));
const facts = { version: clientVersion.gitVersion, global: flagsIn(run('options')), verbs };
const target = join(import.meta.dirname, '../kubectl/golden/flags.json');
await writeFile(target, `${JSON.stringify(facts, undefined, 1)}\n`);
console.log(`${Object.keys(verbs).length} verbs recorded`);
