import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseArgs } from 'node:util';
import { COMMON_FLAGS, toParseArgs } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands/table.ts';
import { main } from '../../src/cli/index.ts';
import { CLIENT_VERBS } from '../../src/cli/invocation.ts';

/** Output of a successful command. */
async function printed(...argv: string[]): Promise<string> {
  const texts: string[] = [];
  const out = { stdout: (text: string) => void texts.push(text), stderr: assert.fail };
  assert.equal(await main({ argv, argv0: 'hyperedge', out }), 0);
  return texts.join('');
}

test('each command has a unique name of one or two words', () => {
  const names = COMMANDS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z][a-z-]*( [a-z][a-z-]*)?$/);
  assert.deepEqual(
    names.filter((name) => CLIENT_VERBS.includes(name)),
    ['run'],
  );
});

test('each command summary begins with a verb in lower case and has no full stop', () => {
  for (const { name, summary } of COMMANDS) assert.match(summary, /^[a-z][^\n]*[^.\n]$/, name);
});

test('each command has examples that its flags and arguments accept', () => {
  for (const command of COMMANDS) {
    assert.ok(command.examples.length > 0, command.name);
    for (const [, call] of command.examples) {
      assert.ok(`${call} `.startsWith(`${command.name} `), call);
      if (command.arguments === 'own') continue;
      const args = (call.split(' > ')[0] ?? '').split(' ').slice(command.name.split(' ').length);
      const options = toParseArgs({ ...command.flags, ...COMMON_FLAGS });
      const { positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
      const [fewest, most] = command.arguments;
      assert.ok(positionals.length >= fewest && positionals.length <= most, call);
    }
  }
});

test('help shows the summary, the examples and the flags', async () => {
  assert.equal(
    await printed('image', 'pin', '--help'),
    `Usage: hyperedge image pin IMAGE…

Exclude images from garbage collection.

Examples:
  # Pin an image
  hyperedge image pin registry.example/app:1

Flags:
      --root DIR  root of all paths (default /)
  -h, --help      show this help
  -q, --quiet     print results and errors only, no progress
      --verbose   print the stack of an error
`,
  );
});

test('the command overview lists each public command once and no internal command', async () => {
  const stdout = await printed('--help');
  for (const { name, hidden, summary } of COMMANDS) {
    const lines = stdout.split('\n').filter((line) => line.startsWith(`  ${name} `) && line.endsWith(`  ${summary}`));
    assert.equal(lines.length, hidden ? 0 : 1, name);
  }
});
