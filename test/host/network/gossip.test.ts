import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { callAgent } from '../../../src/gossip/agent/index.ts';
import type { AgentMember } from '../../../src/gossip/membership/agent-port.ts';
import { bootstrapField } from '../../../src/host/config/bootstrap.ts';
import { type Settings, settingsOf } from '../../../src/host/config/settings.ts';
import { startGossip } from '../../../src/host/network/gossip.ts';
import { parseConfig } from '../../../src/wire/strict-yaml.ts';
import { freePort } from '../../support/ports.ts';

async function withRoot(use: (settings: (gossip?: string) => Settings) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'he-gossip-'));
  const settings = (gossip?: string): Settings =>
    settingsOf({
      root,
      bootstrapFile: 'bootstrap.yaml',
      file: parseConfig(
        `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nnode: {name: one, ip: 127.0.0.1}\n${gossip === undefined ? '' : `gossip: ${gossip}\n`}`,
        'b',
        bootstrapField,
      ),
      host: { defaultRouteLink: undefined, byLink: [] },
    });
  try {
    await mkdir(dirname(settings().paths.agentSocket), { recursive: true });
    await use(settings);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function portInUse(): Promise<{ readonly port: number; close(): void }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  return { port: address.port, close: () => server.close() };
}

test('a host creates its keyring, forms a ring of one member, and publishes its facts', () =>
  withRoot(async (settings) => {
    const port = await freePort();
    const given = settings(`{port: ${port}}`);
    for (let start = 0; start < 2; start++) {
      const gossip = await startGossip(given, silentLog);
      assert.equal(gossip.note, undefined);
      const [self, ...others] = await callAgent<AgentMember[]>(given.paths.agentLink, 'members', {}, 5000);
      assert.deepEqual(others, []);
      assert.equal(self?.address, `127.0.0.1:${port}`);
      assert.deepEqual(self?.addresses, { api: '127.0.0.1:8443', etcd: '127.0.0.1:2379', peer: '127.0.0.1:2380' });
      assert.equal((await stat(given.gossip.keyringFile)).mode & 0o777, 0o600);
      await gossip.stop();
    }
    assert.equal(JSON.parse(await readFile(given.gossip.keyringFile, 'utf8')).length, 1);
  }));

test('rejects a configured port that is in use, and disables gossip if the default port is in use', () =>
  withRoot(async (settings) => {
    const { port, close } = await portInUse();
    try {
      await assert.rejects(startGossip(settings(`{port: ${port}}`), silentLog), {
        code: 'address-in-use',
        message: new RegExp(`port ${port} for gossip is in use; free it, or set gossip.port in bootstrap.yaml`),
      });
      const quiet = settings();
      const gossip = await startGossip({ ...quiet, gossip: { ...quiet.gossip, port } }, silentLog);
      assert.match(gossip.note ?? '', /in use.*gossip is disabled/);
      await gossip.stop();
      await assert.rejects(callAgent(quiet.paths.agentSocket, 'members', {}, 5000), { code: 'not-running' });
      assert.equal((await startGossip(settings(`{enabled: false, port: ${port}}`), silentLog)).note, undefined);
    } finally {
      close();
    }
  }));

test('rejects a missing, readable or invalid keyring before listening', () =>
  withRoot(async (settings) => {
    const joining = settings('{join: [10.0.0.2]}');
    await assert.rejects(startGossip(joining, silentLog), {
      code: 'bad-config',
      message:
        /gossip\.join: .*gossip-keyring\.json does not exist; copy it from a member of the ring, or create one .*keygen/,
    });
    await mkdir(dirname(joining.gossip.keyringFile), { recursive: true });
    await writeFile(joining.gossip.keyringFile, '["x"]');
    await chmod(joining.gossip.keyringFile, 0o644);
    await assert.rejects(startGossip(joining, silentLog), { code: 'bad-keyring', message: /chmod 0600/ });
    await chmod(joining.gossip.keyringFile, 0o600);
    await assert.rejects(startGossip(joining, silentLog), { code: 'bad-keyring', message: /entry 1 is not base64/ });
  }));
