/**
 * Updates to builds with a higher store level and newer tables: one whose API server fails after a minute and which
 * changes the tables immediately, so that hosts must undo it, and a working one. On one master and on three. Run by
 * `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PRODUCT_VERSION } from '../../src/base/versions/version.ts';
import { eventually } from '../e2e/harness.ts';
import { buildChanged, type SourceChange } from './support/changed-build.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';
import { clusterVersion, historyOf, requestUpdate, SignedReleases } from './support/signed-releases.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const BROKEN = '0.3.0';
const GOOD = '0.4.0';
/** Versions of the tables: the current one with a journal in use, and that of the newer builds. */
const TABLES = { today: 4, newer: 6 };
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
  const releases = new SignedReleases();
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
    test(`updates and rolls back releases with changed storage formats on ${masters} master${masters === 1 ? '' : 's'}`, async () => {
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
    await releases.trust(cluster, a);
    await a.mustKubectl(['create', 'configmap', 'before', '--from-literal=k=v']);
    await releases.import(a, BROKEN, broken);
    await requestUpdate(a, BROKEN);
    const ended = await cluster.line.step(`${BROKEN} is given up`, () =>
      eventually('the end of the update', ENDED_MS, async () => {
        const found = await clusterVersion(a);
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

    await releases.import(a, GOOD, good);
    await requestUpdate(a, GOOD);
    await cluster.line.step(`${GOOD} is completed`, () =>
      eventually('the completed update', 2 * ENDED_MS, async () => {
        const isDone = historyOf(await clusterVersion(a))[0] === `${GOOD} Completed`;
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
