/** Key rotation under traffic, between these members and with a stock serf agent in both directions. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { callAgent } from '../../../src/gossip/agent/index.ts';
import { newKeyringText } from '../../../src/gossip/memberlist/index.ts';
import type { AgentMember, KeyReport } from '../../../src/gossip/membership/agent-port.ts';
import { freePort } from '../../support/ports.ts';
import { directory, startAgent, type TestAgent } from './agents.ts';
import { eventually } from './ring.ts';

const run = promisify(execFile);
const missing = await run('serf', ['version']).then(
  () => false,
  () => 'there is no serf on this host (Debian package serf)',
);
const ask = <T>(agent: TestAgent, method: string, params: unknown = {}): Promise<T> =>
  callAgent<T>(agent.socket, method, params, 20_000);
const keysOf = (agent: TestAgent, action: string, key?: string): Promise<KeyReport> =>
  ask(agent, 'keys', { action, ...(key === undefined ? {} : { key }) });
const newKey = (): string => randomBytes(32).toString('base64');
const text = (agent: TestAgent): string => `${agent.address.ip}:${agent.address.port}`;

async function statesOf(agent: TestAgent): Promise<string> {
  const members = await ask<AgentMember[]>(agent, 'members');
  return members
    .map(({ name, state }) => `${name} ${state}`)
    .sort()
    .join(', ');
}

async function keyringFiles(path: string, names: readonly string[]): Promise<string[]> {
  const files = names.map((name) => join(path, `${name}.json`));
  const [first = ''] = files;
  await writeFile(first, newKeyringText(), { mode: 0o600 });
  for (const file of files.slice(1)) await copyFile(first, file);
  return files;
}

test('installs, uses and removes keys on three members, and refuses actions that would disconnect a member', {
  timeout: 60_000,
}, async () => {
  await using dir = await directory();
  const [k1 = '', k2 = '', k3 = ''] = await keyringFiles(dir.path, ['k1', 'k2', 'k3']);
  await using a = await startAgent('a', { directory: dir.path, keys: k1 });
  await using b = await startAgent('b', { directory: dir.path, keys: k2, peers: [text(a)] });
  await using c = await startAgent('c', { directory: dir.path, keys: k3, peers: [text(a)] });
  for (const each of [a, b, c])
    await eventually('all see all', async () => (await statesOf(each)) === 'a alive, b alive, c alive');
  const old = (await keysOf(a, 'list')).primary;
  const next = newKey();

  await assert.rejects(keysOf(a, 'use', next), { code: 'key-missing' });
  await assert.rejects(keysOf(a, 'remove', old), { code: 'key-in-use' });
  assert.deepEqual(await keysOf(a, 'install', next).then(({ members, done, failures }) => [members, done, failures]), [
    3,
    3,
    [],
  ]);
  assert.equal((await keysOf(b, 'use', next)).done, 3);
  assert.deepEqual(
    (await keysOf(c, 'list')).keys.map(({ key, members, primaryOn }) => [key === next, members, primaryOn]).sort(),
    [
      [false, 3, 0],
      [true, 3, 3],
    ],
  );
  assert.equal((await keysOf(c, 'remove', old)).done, 3);
  for (const file of [k1, k2, k3]) assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), [next]);
  // Long enough to probe every member several times with the new key only.
  await new Promise((resolve) => setTimeout(resolve, 2000));
  for (const each of [a, b, c]) assert.equal(await statesOf(each), 'a alive, b alive, c alive');

  await c.kill();
  await eventually('c is dead', async () => (await statesOf(a)).includes('c dead'));
  assert.equal((await keysOf(a, 'install', old)).members, 2);
});

test('rotates gossip keys from a serf agent to a built-in agent, and in the opposite direction', {
  skip: missing,
  timeout: 60_000,
}, async () => {
  await using dir = await directory();
  const [k1 = '', k2 = '', k3 = ''] = await keyringFiles(dir.path, ['k1', 'k2', 'serf']);
  await using a = await startAgent('a', { directory: dir.path, keys: k1 });
  await using b = await startAgent('b', { directory: dir.path, keys: k2, peers: [text(a)] });
  const rpc = `-rpc-addr=127.0.0.1:${await freePort()}`;
  const bind = `-bind=127.0.0.1:${await freePort()}`;
  const args = ['agent', '-node=s', bind, rpc, '-profile=local', `-keyring-file=${k3}`, `-join=${text(a)}`];
  const agent = spawn('serf', args, { stdio: 'ignore' });
  try {
    for (const each of [a, b])
      await eventually('all see all', async () => (await statesOf(each)) === 'a alive, b alive, s alive');
    const serf = async (...words: string[]): Promise<string> =>
      (await run('serf', [words[0] ?? '', rpc, ...words.slice(1)])).stdout;
    await eventually(
      'serf sees all',
      async () => (await serf('members')).split('\n').filter((line) => line.includes('alive')).length === 3,
    );
    const old = (await keysOf(a, 'list')).primary;
    const next = newKey();
    assert.match(await serf('keys', '-list'), new RegExp(`${old.replaceAll(/[+/=]/g, '.')} +\\[3/3\\]`));
    await serf('keys', `-install=${next}`);
    assert.deepEqual(
      (await keysOf(a, 'list')).keys.map(({ members }) => members),
      [3, 3],
    );
    await serf('keys', `-use=${next}`);
    await serf('keys', `-remove=${old}`);
    for (const each of [a, b])
      assert.deepEqual(
        each.keyring?.store.keys().map((key) => Buffer.from(key).toString('base64')),
        [next],
      );

    // The keys are now rotated in the reverse direction.
    const third = newKey();
    assert.equal((await keysOf(b, 'install', third)).done, 3);
    assert.equal((await keysOf(b, 'use', third)).done, 3);
    assert.equal((await keysOf(b, 'remove', next)).done, 3);
    assert.deepEqual(JSON.parse(await readFile(k3, 'utf8')), [third]);
    // serf shows a member's error with its text.
    const refused = await serf('keys', `-remove=${third}`).catch(
      (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
    );
    assert.match(refused, /is the encryption key/);
    assert.match(await serf('reachability'), /Successfully contacted all live nodes/);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    for (const each of [a, b]) assert.equal(await statesOf(each), 'a alive, b alive, s alive');
  } finally {
    agent.kill('SIGKILL');
  }
});
