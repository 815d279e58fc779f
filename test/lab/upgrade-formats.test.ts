/**
 * Updates to builds with a higher store level and newer tables: one whose API server fails after a minute and which
 * changes the tables immediately, so that hosts must undo it, and a working one. On one master and on three. Run by
 * `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { releaseFileName } from '../../src/api/releases/manifest.ts';
import { PRODUCT_VERSION } from '../../src/base/versions/version.ts';
import type { ClusterVersion } from '../../src/openshift/operators/kinds/config/types.ts';
import { digestOf, writeBundle } from '../../src/openshift/updates/io/index.ts';
import { eventually } from '../e2e/harness.ts';
import { buildChanged, type SourceChange } from './support/changed-build.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const BROKEN = '0.3.0';
const GOOD = '0.4.0';
/** Versions of the tables: the current one with a journal in use, and that of the newer builds. */
const TABLES = { today: 4, newer: 6 };
const DROP_IN = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nupdates: {healthyWithin: 60s}\n';
const ENDED_MS = 600_000;

const newerTables = (level: number): SourceChange => ({
  file: 'src/store/disk/schema.ts',
  from: '{ to: FIRST_SCHEMA, level: 0, make: addChecksums },',
  to: `{ to: FIRST_SCHEMA, level: 0, make: addChecksums },
    { to: 5, level: ${level}, make: (db: Database.Database) => db.exec('ALTER TABLE lease ADD COLUMN owner TEXT') },`,
});
const HIGHER_LEVEL: SourceChange = {
  file: 'src/store/replication/maintenance/log-level.ts',
  from: 'NEWEST_LEVEL: number = LogLevel.tokens',
  to: 'NEWEST_LEVEL: number = LogLevel.tokens + 1',
};
const ENDING_API_SERVER: SourceChange = {
  file: 'src/cli/commands/processes/api.ts',
  from: "const logLevel = integerFlag(flags, 'loglevel', 0, 10);",
  to: "const logLevel = integerFlag(flags, 'loglevel', 0, 10);\n    setTimeout(() => process.exit(70), 62_000);",
};

describe('updates of stored formats', { skip: missing ?? false, timeout: 3_000_000 }, () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  let work = '';
  let broken = '';
  let good = '';
  before(async () => {
    work = await mkdtemp(join(tmpdir(), 'he-formats-'));
    const built = async (name: string, version: string, changes: readonly SourceChange[]): Promise<string> => {
      await mkdir(join(work, name));
      return buildChanged(join(work, name), version, changes);
    };
    // The broken build also changes tables before all members have the level.
    broken = await built('broken', BROKEN, [HIGHER_LEVEL, newerTables(0), ENDING_API_SERVER]);
    good = await built('good', GOOD, [HIGHER_LEVEL, newerTables(3)]);
  });
  after(() => rm(work, { recursive: true, force: true }));

  for (const masters of [1, 3]) {
    test(`on ${masters} master${masters === 1 ? '' : 's'}`, async () => {
      const cluster = await LabCluster.formed({ masters, nodes: 0 }, `formats-${masters}`);
      try {
        await play(cluster);
      } finally {
        await cluster.stop();
      }
    });
  }

  async function play(cluster: LabCluster): Promise<void> {
    const a = cluster.host(0);
    await trust(cluster, a);
    await a.mustKubectl(['create', 'configmap', 'before', '--from-literal=k=v']);
    await importRelease(a, BROKEN, broken);
    await want(a, BROKEN);
    const ended = await cluster.line.step(`${BROKEN} is given up`, () =>
      eventually('the end of the update', ENDED_MS, async () => {
        const found = await version(a);
        const history = historyOf(found);
        return history[0] === `${PRODUCT_VERSION} Completed` && history[1] === `${BROKEN} Partial` ? found : undefined;
      }),
    );
    const failing = ended.status?.conditions?.find(({ type }) => type === 'Failing');
    assert.match(
      failing?.message ?? '',
      /update to 0\.3\.0 was rolled back: host .* 0\.3\.0 was not healthy within 60 s/,
    );
    await restored(cluster, a);
    for (const host of cluster.hosts) assert.equal(await tables(host), TABLES.today, `tables of ${host.name}`);

    // All hosts, including the one that tried the release, also start after a reboot.
    for (const host of cluster.hosts) {
      await host.powerOff();
      await host.boot();
      await cluster.untilBack(host, cluster.hosts, 240_000);
    }
    await restored(cluster, a);

    await importRelease(a, GOOD, good);
    await want(a, GOOD);
    await cluster.line.step(`${GOOD} is completed`, () =>
      eventually('the completed update', 2 * ENDED_MS, async () => {
        const isDone = historyOf(await version(a))[0] === `${GOOD} Completed`;
        const changed = await Promise.all(cluster.hosts.map(tables));
        if (!isDone && masters(cluster) > 1)
          assert.ok(!changed.includes(TABLES.newer), 'no table changes before the end');
        return isDone ? true : undefined;
      }),
    );
    for (const host of cluster.hosts)
      await eventually(`newer tables on ${host.name}`, 120_000, async () =>
        (await tables(host)) === TABLES.newer ? true : undefined,
      );
    await a.mustKubectl(['get', 'configmap', 'before']);
  }

  async function trust(cluster: LabCluster, a: NspawnHost): Promise<void> {
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const create = ['-n', 'openshift-config', 'create', 'configmap', 'release-keys', `--from-literal=lab.pem=${pem}`];
    await a.mustKubectl(create);
    for (const host of cluster.hosts) {
      const directory = join(host.root, 'etc/origin/bootstrap.yaml.d');
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, '50-updates.yaml'), DROP_IN, { mode: 0o600 });
      await host.inside('systemctl', ['restart', 'hyperedge']);
      await cluster.untilBack(host, cluster.hosts, 240_000);
    }
  }

  async function importRelease(a: NspawnHost, release: string, program: string): Promise<void> {
    const name = releaseFileName('x64');
    const { size } = await stat(program);
    const files = [{ name, architecture: 'x64', size, sha256: await digestOf(program) } as const];
    const manifest = { version: release, kubernetes: 'v1.36.0+hyperedge1', channels: [], files };
    await writeBundle(join(a.root, 'root/release'), manifest, new Map([[name, program]]), privateKey);
    await a.must('hyperedge', ['bundle', 'import', '/root/release'], { timeoutMs: 240_000 });
    await rm(join(a.root, 'root/release'));
  }

  async function want(a: NspawnHost, release: string): Promise<void> {
    const patch = JSON.stringify({ spec: { desiredUpdate: { version: release } } });
    await a.mustKubectl(['patch', 'clusterversion', 'version', '--type=merge', '-p', patch]);
  }

  const version = async (a: NspawnHost): Promise<ClusterVersion> =>
    JSON.parse(await a.mustKubectl(['get', 'clusterversion', 'version', '-o', 'json', '--request-timeout=5s']));
  const historyOf = ({ status }: ClusterVersion): (string | undefined)[] =>
    (status?.history ?? []).map((each) => `${each.version} ${each.state}`);
  const masters = ({ hosts }: LabCluster): number => hosts.length;

  /** Waits until all hosts run this release with all data and no manifest refers to another executable. */
  async function restored(cluster: LabCluster, a: NspawnHost): Promise<void> {
    await cluster.untilReady(a, cluster.hosts, 240_000);
    await cluster.untilVoters(a, cluster.hosts, 240_000);
    await a.mustKubectl(['get', 'configmap', 'before']);
    for (const host of cluster.hosts) {
      const status = JSON.parse((await host.inside('hyperedge', ['status', '-o', 'json'])).stdout);
      assert.equal(status.version, PRODUCT_VERSION, host.name);
      for (const name of ['etcd', 'apiserver', 'controller']) {
        const manifest = await readFile(join(host.root, `etc/origin/node/pods/${name}.yaml`), 'utf8');
        assert.doesNotMatch(manifest, /hyperedge-0\.3\.0/, `${name} of ${host.name}`);
      }
    }
  }

  /** Version of the tables from the header of the database. Source: SQLite's file format. */
  async function tables({ directoryOfState }: NspawnHost): Promise<number> {
    const file = await open(join(directoryOfState, 'openshift.local.etcd/revisions.db'), 'r');
    try {
      const header = Buffer.alloc(64);
      await file.read(header, 0, 64, 0);
      return header.readUInt32BE(60);
    } finally {
      await file.close();
    }
  }
});
