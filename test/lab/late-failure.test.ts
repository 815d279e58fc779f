/**
 * Releases whose API server fails long after the update was confirmed: an administrator returns the hosts with
 * `hyperedge bundle rollback`, which works without an API server. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PRODUCT_VERSION } from '../../src/base/versions/version.ts';
import { NEWEST_LEVEL } from '../../src/store/index.ts';
import { eventually } from '../e2e/harness.ts';
import { buildChanged, type SourceChange } from './support/changed-build.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';
import { clusterVersion, historyOf, requestUpdate, SignedReleases, untilCompleted } from './support/signed-releases.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

/** Release that stores data as this build does. */
const SAME = '0.3.0';
/** Release that raises the level of the store, so that this build cannot read it. */
const RAISED = '0.4.0';
const ENDED_MS = 600_000;
/** The API server ends as soon as this file exists. It is in a directory that its container mounts. */
const TRIGGER = 'var/log/origin/lab-trigger';

const FAILING_API_SERVER: SourceChange = {
  file: 'src/cli/commands/processes/api.ts',
  from: "const logLevel = integerFlag(flags, 'loglevel', 0, 10);",
  to: `const logLevel = integerFlag(flags, 'loglevel', 0, 10);
    const { existsSync } = await import('node:fs');
    setInterval(() => existsSync('/${TRIGGER}') && process.exit(70), 500);`,
};
const HIGHER_LEVEL: SourceChange = {
  file: 'src/store/replication/maintenance/log-level.ts',
  from: 'NEWEST_LEVEL: number = LogLevel.tokens',
  to: 'NEWEST_LEVEL: number = LogLevel.tokens + 1',
};

describe('rollback of releases that fail after their confirmation', {
  skip: missing ?? false,
  timeout: 3_000_000,
}, () => {
  const releases = new SignedReleases();
  let work = '';
  let same = '';
  let raised = '';
  before(async () => {
    work = await mkdtemp(join(tmpdir(), 'he-late-'));
    const built = async (name: string, version: string, changes: readonly SourceChange[]): Promise<string> => {
      await mkdir(join(work, name));
      return buildChanged(join(work, name), version, changes);
    };
    same = await built('same', SAME, [FAILING_API_SERVER]);
    raised = await built('raised', RAISED, [FAILING_API_SERVER, HIGHER_LEVEL]);
  });
  after(() => rm(work, { recursive: true, force: true }));

  test('a rollback of a single master keeps a readable store and replaces an unreadable store only on request', async () => {
    const cluster = await LabCluster.formed({ masters: 1, nodes: 0 }, 'late-1');
    try {
      const a = cluster.host(0);
      await releases.trust(cluster, a);
      const refused = await a.inside('hyperedge', ['bundle', 'rollback']);
      assert.notEqual(refused.code, 0);
      assert.match(refused.stderr, /no record of a former release/);
      await releases.import(a, SAME, same);
      await requestUpdate(a, SAME);
      await cluster.line.step(`${SAME} is completed`, () => untilCompleted(a, SAME, ENDED_MS));
      await a.mustKubectl(['create', 'configmap', 'after-same']);
      await fail(cluster, a);
      assert.match((await a.inside('hyperedge', ['doctor'])).stdout, /hyperedge bundle rollback/);
      const printed = await cluster.line.step('rolled back', () =>
        a.must('hyperedge', ['bundle', 'rollback'], { timeoutMs: 240_000 }),
      );
      assert.match(printed, new RegExp(`this host runs ${PRODUCT_VERSION.replaceAll('.', '\\.')} again instead of`));
      await served(cluster, a, SAME);
      await a.mustKubectl(['get', 'configmap', 'after-same']);

      await rm(join(a.root, TRIGGER));
      await releases.import(a, RAISED, raised);
      await requestUpdate(a, RAISED);
      await cluster.line.step(`${RAISED} is completed`, () => untilCompleted(a, RAISED, ENDED_MS));
      // The level rises after the update is complete.
      await eventually('the raised level', 120_000, async () => {
        const state = JSON.parse(
          await a.mustKubectl(['get', '--raw', `/api/v1/nodes/${a.name}/proxy/hyperedge/store`]),
        );
        return state.level.value > NEWEST_LEVEL ? true : undefined;
      });
      await a.mustKubectl(['create', 'configmap', 'after-raised']);
      await fail(cluster, a);
      const unread = await a.inside('hyperedge', ['bundle', 'rollback']);
      assert.notEqual(unread.code, 0);
      assert.match(unread.stderr, /add --restore-store to restore the snapshot of .* all later changes are lost/);
      await cluster.line.step('rolled back with the snapshot', () =>
        a.must('hyperedge', ['bundle', 'rollback', '--restore-store'], { timeoutMs: 240_000 }),
      );
      await cluster.untilReady(a, cluster.hosts, 240_000);
      await a.mustKubectl(['get', 'configmap', 'after-same']);
      assert.notEqual((await a.kubectl(['get', 'configmap', 'after-raised'])).code, 0);
      const node = await a.mustKubectl(['get', 'node', a.name, '-o', 'json']);
      assert.match(node, /had the format of a newer release after the rollback of an update/);
      await a.powerOff();
      await a.boot();
      await cluster.untilBack(a, cluster.hosts, 240_000);
    } finally {
      await cluster.stop();
    }
  });

  test('three masters return to the former release after an administrator has rolled back one of them', async () => {
    const cluster = await LabCluster.formed({ masters: 3, nodes: 0 }, 'late-3');
    try {
      const a = cluster.host(0);
      await releases.trust(cluster, a);
      await releases.import(a, SAME, same);
      await requestUpdate(a, SAME);
      await cluster.line.step(`${SAME} is completed`, () => untilCompleted(a, SAME, ENDED_MS));
      await a.mustKubectl(['create', 'configmap', 'after-same']);
      await fail(cluster, a);
      await cluster.line.step('rolled back on one host', () =>
        a.must('hyperedge', ['bundle', 'rollback'], { timeoutMs: 240_000 }),
      );
      await cluster.line.step('all hosts are back', () => served(cluster, a, SAME));
      await a.mustKubectl(['get', 'configmap', 'after-same']);
    } finally {
      await cluster.stop();
    }
  });

  /** Ends the API servers of all hosts, also after each restart. */
  async function fail(cluster: LabCluster, a: NspawnHost): Promise<void> {
    for (const host of cluster.hosts) await writeFile(join(host.root, TRIGGER), '');
    await eventually('no API server', 60_000, async () =>
      (await a.kubectl(['get', 'ns', '--request-timeout=3s'])).code === 0 ? undefined : true,
    );
  }

  /** Waits until all hosts run this build and the cluster has abandoned `version`. */
  async function served(cluster: LabCluster, a: NspawnHost, version: string): Promise<void> {
    const found = await eventually(`the end of ${version}`, ENDED_MS, async () => {
      const seen = await clusterVersion(a);
      return historyOf(seen)[0] === `${PRODUCT_VERSION} Completed` ? seen : undefined;
    });
    assert.equal(historyOf(found)[1], `${version} Completed`);
    const failing = found.status?.conditions?.find(({ type }) => type === 'Failing');
    assert.match(failing?.message ?? '', new RegExp(`update to ${version.replaceAll('.', '\\.')} was rolled back`));
    await cluster.untilReady(a, cluster.hosts, 240_000);
    await cluster.untilVoters(a, cluster.hosts, 240_000);
    for (const host of cluster.hosts) {
      const status = JSON.parse((await host.inside('hyperedge', ['status', '-o', 'json'])).stdout);
      assert.equal(status.version, PRODUCT_VERSION, host.name);
    }
  }
});
