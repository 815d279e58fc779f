import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { COMMANDS } from '../../src/cli/commands/table.ts';
import { main } from '../../src/cli/index.ts';
import { OUTPUT_FLAG } from '../../src/cli/printers.ts';

/** Commands that print no data, with what they print instead. Every other command has -o json|yaml. */
const OTHERS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['run', 'etcd', 'api', 'controllers', 'proxy', 'hollow', 'keep-balancer', 'volume-call', 'update-guard'].map(
      (name) => [name, 'a process with a log'],
    ),
  ),
  ...Object.fromEntries(
    ['install', 'reset', 'uninstall', 'gather', 'machine-config replay'].map((name) => [name, 'steps']),
  ),
  ...Object.fromEntries(
    [
      ...['bundle remove', 'gossip join', 'gossip leave', 'image pin', 'image remove', 'image unpin'],
      ...['master-restart', 'members new-cluster', 'rig power', 'rig release', 'token revoke'],
    ].map((name) => [name, 'a line that confirms the action']),
  ),
  'image export': 'a line; its flag --output names the file',
  'haproxy-config': 'a configuration file',
  'keepalived-config': 'a configuration file',
  'gossip keygen': 'a keyring file',
  'doctor-probe': 'JSON for doctor',
  'master-logs': 'a log',
  'rig console': 'a terminal',
  completion: 'a script for a shell',
  console: 'a one-time link',
  help: 'a page of help',
  'support-bundle': 'steps and a file',
  envtest: 'a directory for a shell variable',
};

test('each command that prints data has -o json|yaml', () => {
  for (const { name, flags } of COMMANDS) {
    if (Object.hasOwn(OTHERS, name)) assert.notEqual(flags['output'], OUTPUT_FLAG, `${name} is listed without need`);
    else
      assert.equal(flags['output'], OUTPUT_FLAG, `${name} prints data: add -o, or list it in ${import.meta.filename}`);
  }
  for (const name of Object.keys(OTHERS))
    assert.ok(
      COMMANDS.some((each) => each.name === name),
      name,
    );
});

async function printed(...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const texts = { stdout: '', stderr: '' };
  const out = {
    stdout: (text: string) => {
      texts.stdout += text;
    },
    stderr: (text: string) => {
      texts.stderr += text;
    },
  };
  return { code: await main({ argv, argv0: 'hyperedge', out }), ...texts };
}

test('each command that prints data rejects an unknown format before any other work', {
  timeout: 120_000,
}, async () => {
  for (const { name, flags, arguments: counts } of COMMANDS) {
    if (flags['output'] !== OUTPUT_FLAG || counts === 'own') continue;
    const positionals = Array.from({ length: counts[0] }, () => '/nonexistent/x');
    const { code, stdout, stderr } = await printed(...name.split(' '), ...positionals, '-o', 'toml');
    assert.deepEqual([code, stdout], [2, ''], `${name}: ${stderr}`);
    assert.match(stderr, /^hyperedge: -o toml: give json, yaml or wide\n$/, name);
  }
});

test('the outputs of -o json and -o yaml contain the same document', async () => {
  const [json, yaml] = [
    await printed('config', 'schema', '-o', 'json'),
    await printed('config', 'schema', '-o', 'yaml'),
  ];
  assert.equal(json.code + yaml.code, 0, json.stderr);
  assert.deepEqual(parse(yaml.stdout), JSON.parse(json.stdout));
});
