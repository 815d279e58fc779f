/**
 * Machine config with the packaged executable: fragments become the config of a pool and files of the host, drift is
 * detected and repaired, a paused pool waits, and a removal restores the original.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Appliance, eventually } from './harness.ts';

const BOOTSTRAP = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nopenshift: {profile: okd}\n';
const START_MS = 180_000;
const CONFIG_MS = 60_000;
const GROUP = 'machineconfiguration.openshift.io';
const POOL = 'master';

let appliance: Appliance;
let root: string;

before(
  async () => {
    root = await mkdtemp(join(tmpdir(), 'he-machine-config-'));
    await mkdir(join(root, 'etc/origin'), { recursive: true });
    await writeFile(join(root, 'etc/origin/bootstrap.yaml'), BOOTSTRAP);
    await writeFile(join(root, 'etc/motd'), 'original');
    appliance = await Appliance.create({ root });
    await appliance.start(START_MS);
    await poolAt((name) => name !== '');
  },
  { timeout: 250_000 },
);

after(async () => {
  await appliance?.stop();
  await rm(root, { recursive: true, force: true });
});

const motd = (): Promise<string> => readFile(join(root, 'etc/motd'), 'utf8').catch(() => 'none');

async function kubectl(args: readonly string[], input?: object): Promise<string> {
  const done = await appliance.kubectl([...args], input === undefined ? {} : { input: JSON.stringify(input) });
  assert.equal(done.code, 0, done.stderr);
  return done.stdout;
}

/** A fragment with one file. */
const fragment = (text: string, more: object = {}) => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'MachineConfig',
  metadata: { name: '50-motd', labels: { [`${GROUP}/role`]: POOL } },
  spec: {
    config: {
      ignition: { version: '3.2.0' },
      storage: { files: [{ path: '/etc/motd', contents: { source: `data:,${encodeURIComponent(text)}` } }], ...more },
    },
  },
});

interface NodeAnnotations {
  readonly currentConfig?: string;
  readonly state?: string;
  readonly reason?: string;
}

async function annotations(): Promise<NodeAnnotations> {
  const { items } = JSON.parse(await kubectl(['get', 'nodes', '-o', 'json'])) as {
    items: { metadata: { annotations: Record<string, string> } }[];
  };
  const own = Object.entries(items[0]?.metadata.annotations ?? {}).filter(([name]) => name.startsWith(GROUP));
  return Object.fromEntries(own.map(([name, value]) => [name.slice(GROUP.length + 1), value]));
}

/** Waits until the pool is Updated with a config that satisfies `wanted`. */
const poolAt = (wanted: (config: string) => boolean): Promise<string> =>
  eventually('pool updated', CONFIG_MS, async () => {
    const pool = JSON.parse(await kubectl(['get', 'mcp', POOL, '-o', 'json'])) as {
      spec: { configuration?: { name: string } };
      status?: { configuration?: { name: string }; conditions?: { type: string; status: string }[] };
    };
    const name = pool.status?.configuration?.name ?? '';
    const updated =
      pool.status?.conditions?.some(({ type, status }) => type === 'Updated' && status === 'True') === true;
    return updated && name === pool.spec.configuration?.name && wanted(name) ? name : undefined;
  });

const stateIs = (state: string): Promise<NodeAnnotations> =>
  eventually(`node ${state}`, CONFIG_MS, async () => {
    const found = await annotations();
    return found.state === state ? found : undefined;
  });

test('writes a file of a MachineConfig to the host without a reboot', { timeout: 120_000 }, async (t) => {
  const before = await poolAt(() => true);
  const began = performance.now();
  await kubectl(['apply', '-f', '-'], fragment('hello'));
  await eventually('file on disk', CONFIG_MS, async () => ((await motd()) === 'hello' ? true : undefined));
  const onDisk = performance.now() - began;
  const config = await poolAt((name) => name !== before);
  t.diagnostic(
    `file on disk after ${Math.round(onDisk)} ms, pool updated after ${Math.round(performance.now() - began)} ms`,
  );
  const { state, currentConfig } = await annotations();
  assert.deepEqual([state, currentConfig], ['Done', config]);
  assert.ok(performance.now() - began < 20_000);
});

test('reports configuration drift with the path of the file, and repairs the file', { timeout: 120_000 }, async (t) => {
  let began = performance.now();
  await writeFile(join(root, 'etc/motd'), 'drifted');
  const { reason = '' } = await stateIs('Degraded');
  t.diagnostic(`drift in the annotation after ${Math.round(performance.now() - began)} ms`);
  assert.match(reason, /unexpected on-disk state .*content mismatch for file "\/etc\/motd"/);
  await eventually('event', CONFIG_MS, async () =>
    /ConfigDriftDetected/.test(await kubectl(['get', 'events', '-A'])) ? true : undefined,
  );
  await kubectl(['annotate', 'mcp', POOL, 'hyperedge.dev/on-drift=repair']);
  began = performance.now();
  await writeFile(join(root, 'etc/motd'), 'drifted again');
  await eventually('repair', CONFIG_MS, async () => ((await motd()) === 'hello' ? true : undefined));
  t.diagnostic(`drift repaired after ${Math.round(performance.now() - began)} ms`);
  await stateIs('Done');
});

test('waits while the pool is paused, and reports unsupported parts of a MachineConfig as Unreconcilable without changes', {
  timeout: 120_000,
}, async () => {
  await kubectl(['patch', 'mcp', POOL, '--type=merge', '-p', '{"spec":{"paused":true}}']);
  await kubectl(['apply', '-f', '-'], fragment('paused', { disks: [{ device: '/one' }] }));
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assert.equal(await motd(), 'hello');
  await kubectl(['patch', 'mcp', POOL, '--type=merge', '-p', '{"spec":{"paused":false}}']);
  const { reason = '' } = await stateIs('Unreconcilable');
  assert.match(reason, /ignition disks section contains changes/);
  assert.equal(await motd(), 'hello');
});

test('restores the original file when the MachineConfig is deleted', { timeout: 120_000 }, async () => {
  await kubectl(['delete', 'mc', '50-motd']);
  await eventually('original', CONFIG_MS, async () => ((await motd()) === 'original' ? true : undefined));
  await stateIs('Done');
});
