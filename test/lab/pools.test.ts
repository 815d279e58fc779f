/**
 * Three masters with systemd in a pool: a change without a reboot, a unit that does not start, and hosts that lose
 * power while files change. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, watch } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const GROUP = 'machineconfiguration.openshift.io';
const POOL = 'master';
const ROLLED_MS = 180_000;
const MANY = 150;

const UNIT = (program: string): string =>
  `[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=${program}\n[Install]\nWantedBy=multi-user.target\n`;

describe('hosts of a pool', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let a: NspawnHost;

  before(async () => {
    cluster = await LabCluster.formed({ masters: 3, nodes: 0 }, 'pools');
    a = cluster.host(0);
    await rolled(() => true);
  });
  after(() => cluster?.stop());

  const onDisk = (host: NspawnHost, path: string): Promise<string> =>
    readFile(join(host.root, path), 'utf8').catch(() => 'none');

  const apply = (name: string, config: object): Promise<unknown> => {
    const object = {
      apiVersion: `${GROUP}/v1`,
      kind: 'MachineConfig',
      metadata: { name, labels: { [`${GROUP}/role`]: POOL } },
      spec: { config: { ignition: { version: '3.2.0' }, ...config } },
    };
    return a.mustKubectl(['apply', '-f', '-'], { input: JSON.stringify(object) });
  };
  const files = (count: number, text: string) => ({
    storage: {
      files: Array.from({ length: count }, (_, index) => ({
        path: `/etc/pool/${index}`,
        contents: { source: `data:,${text}` },
      })),
    },
  });

  /** Resolves while files of the pool are being staged or renamed. */
  const changing = async (host: NspawnHost): Promise<void> => {
    const directory = join(host.root, 'etc', existsSync(join(host.root, 'etc/pool')) ? 'pool' : '.');
    const signal = AbortSignal.timeout(ROLLED_MS);
    for await (const { filename } of watch(directory, { signal }))
      if (filename === 'pool' || filename?.startsWith('.hyperedge-') === true) return;
  };

  /** Annotations with the state of all nodes. */
  const states = async (): Promise<Readonly<Record<string, string>>[]> => {
    const { items } = JSON.parse(await a.mustKubectl(['get', 'nodes', '-o', 'json'])) as {
      items: { metadata: { annotations: Record<string, string> } }[];
    };
    return items.map(({ metadata }) => metadata.annotations);
  };

  /** Waits until all hosts are Done with one config that satisfies `wanted`, and returns its name. */
  const rolled = (wanted: (config: string) => boolean): Promise<string> =>
    eventually('pool rolled', ROLLED_MS, async () => {
      const found = await states();
      const [config = ''] = new Set(found.map((each) => each[`${GROUP}/currentConfig`] ?? ''));
      const done = found.every(
        (each) => each[`${GROUP}/state`] === 'Done' && each[`${GROUP}/currentConfig`] === config,
      );
      return done && found.length === 3 && config !== '' && wanted(config) ? config : undefined;
    });

  test('hosts of a pool apply a file and a unit one host after the other', async () => {
    const before = await rolled(() => true);
    const began = performance.now();
    await apply('50-motd', {
      storage: { files: [{ path: '/etc/pool.conf', contents: { source: 'data:,pool' }, mode: 0o600 }] },
    });
    const first = await rolled((config) => config !== before);
    cluster.line.note(`a file on 3 hosts after ${Math.round(performance.now() - began)} ms`);
    for (const host of cluster.hosts) assert.equal(await onDisk(host, 'etc/pool.conf'), 'pool');
    const units = [{ name: 'pool-test.service', enabled: true, contents: UNIT('/bin/true') }];
    await apply('60-unit', { systemd: { units } });
    await rolled((config) => config !== first);
    for (const host of cluster.hosts) {
      assert.equal((await host.must('systemctl', ['is-active', 'pool-test.service'])).trim(), 'active');
      assert.equal((await host.must('systemctl', ['is-enabled', 'pool-test.service'])).trim(), 'enabled');
    }
  });

  test('reverts a unit that fails to start on the first host, and does not apply it to further hosts', async () => {
    const good = await rolled(() => true);
    const units = [{ name: 'pool-bad.service', enabled: true, contents: UNIT('/bin/false') }];
    await apply('70-bad', { systemd: { units } });
    const found = await eventually('a degraded host', ROLLED_MS, async () => {
      const degraded = (await states()).filter((each) => each[`${GROUP}/state`] === 'Degraded');
      return degraded.length > 0 ? degraded : undefined;
    });
    assert.equal(found.length, 1);
    assert.match(found[0]?.[`${GROUP}/reason`] ?? '', /rolled back from .*: .*RestartUnit/);
    for (const host of cluster.hosts) assert.equal(await onDisk(host, 'etc/systemd/system/pool-bad.service'), 'none');
    await a.mustKubectl(['delete', 'mc', '70-bad']);
    assert.equal(await rolled(() => true), good);
  });

  test('a host of a pool has either the old or the new files after a power cut during a change', async () => {
    for (const [index, host] of cluster.hosts.slice(1).entries()) {
      const before = await rolled(() => true);
      const old = await onDisk(host, 'etc/pool/0');
      const text = `round-${index}`;
      const began = changing(host);
      await apply('80-many', files(MANY, text));
      await began;
      await host.cutPower();
      await cluster.line.step(`${host.name}: boot`, () => host.boot());
      const contents = new Set(
        await Promise.all(Array.from({ length: MANY }, (_, each) => onDisk(host, `etc/pool/${each}`))),
      );
      cluster.line.note(`${host.name} after the cut: ${[...contents].join()}`);
      assert.equal(contents.size, 1);
      assert.ok(contents.has(text) || contents.has(old));
      await rolled((config) => config !== before);
      assert.equal(await onDisk(host, `etc/pool/${MANY - 1}`), text);
    }
  });
});
