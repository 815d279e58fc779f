import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { withOverview } from '../../build/command-overview.ts';
import { manPages } from '../../build/release/manual.ts';
import { COMMANDS } from '../../src/cli/commands/table.ts';
import { main } from '../../src/cli/index.ts';
import { TOPICS } from '../../src/cli/topics.ts';

const PAGES = manPages('1.2.3', '2026-01-01');
const isMissing = (program: string, ...args: string[]): string | false =>
  spawnSync(program, args).error === undefined ? false : `${program} is not installed`;

test('there is a man page for the program, its client and each command', () => {
  const files = PAGES.map(({ file }) => file);
  assert.equal(new Set(files).size, files.length);
  for (const name of ['hyperedge', 'hyperedge-kubectl', 'hyperedge-install', 'hyperedge-image-pin'])
    assert.ok(files.includes(`${name}.1`), name);
  assert.equal(files.length, COMMANDS.filter(({ hidden }) => !hidden).length + 2);
  const text = PAGES.find(({ file }) => file === 'hyperedge-snapshot-save.1')?.text ?? '';
  assert.match(text, /^\.TH HYPEREDGE-SNAPSHOT-SAVE 1 "2026-01-01" "hyperedge 1\.2\.3"/);
  assert.match(text, /^\\fB\\-\\-keep\\fR \\fIN\\fR$/m);
  assert.match(text, /^\.B hyperedge snapshot save \\-\\-keep 8$/m);
});

test('mandoc has no warning for the pages', { skip: isMissing('mandoc', '-V') }, async () => {
  await checkPages((path) => spawnSync('mandoc', ['-Tlint', '-Wwarning', path], { encoding: 'utf8' }));
});

test('groff has no warning for the pages', { skip: isMissing('groff', '--version') }, async () => {
  const args = ['-man', '-Tutf8', '-ww', '-z', '-rLL=100n'];
  await checkPages((path) => spawnSync('groff', [...args, path], { encoding: 'utf8' }));
});

async function checkPages(check: (path: string) => { stdout: string; stderr: string }): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'he-manual-'));
  try {
    for (const { file, text } of PAGES) {
      const path = join(directory, file);
      await writeFile(path, text);
      const { stdout, stderr } = check(path);
      assert.equal(`${stdout}${stderr}`, '', file);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
}

test('the command overview in the documents equals the command table', async () => {
  const page = await readFile(join(import.meta.dirname, '../../docs/command-line.md'), 'utf8');
  assert.equal(page, withOverview(page), 'run node build/command-overview.ts');
});

test('help shows topics, commands and groups', async () => {
  const help = async (...words: string[]): Promise<string> => {
    const texts: string[] = [];
    const out = { stdout: (text: string) => void texts.push(text), stderr: assert.fail };
    assert.equal(await main({ argv: ['help', ...words], argv0: 'hyperedge', out }), 0);
    return texts.join('');
  };
  for (const [name, { text }] of Object.entries(TOPICS)) {
    assert.equal(await help(name), text);
    for (const line of text.split('\n')) assert.ok(line.length <= 80, line);
  }
  assert.match(await help('snapshot', 'save'), /^Usage: hyperedge snapshot save /);
  assert.match(await help('snapshot'), /^ {2}snapshot save +save a snapshot/);
  assert.match(await help(), /exit-codes/);
});
