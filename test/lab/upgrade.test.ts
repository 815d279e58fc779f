/**
 * Rolling update to a signed release on three masters while a client sends requests, and to a release that does not
 * become healthy and is rolled back. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { releaseFileName } from '../../src/api/releases/manifest.ts';
import type { ClusterVersion } from '../../src/openshift/operators/kinds/config/types.ts';
import { digestOf, writeBundle } from '../../src/openshift/updates/io/index.ts';
import { eventually, projectRoot, run } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';
import type { RequestReport } from './support/requests.child.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const GOOD = '0.2.0';
const BROKEN = '0.3.0';
/** Each of three hosts must be healthy for 90 s. */
const ROLLED_MS = 480_000;
const ERRORS_MS = 1_000;
/** Errors with a larger distance belong to different masters. */
const APART_MS = 5_000;
const DROP_IN = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nupdates: {healthyWithin: 60s}\n';

describe('rolling update', { skip: missing ?? false, timeout: 1_500_000 }, () => {
  let cluster: LabCluster;
  let a: NspawnHost;
  let work = '';
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');

  const version = async (): Promise<ClusterVersion> =>
    JSON.parse(await a.mustKubectl(['get', 'clusterversion', 'version', '-o', 'json', '--request-timeout=5s']));
  const want = async (wanted: string): Promise<void> => {
    const patch = JSON.stringify({ spec: { desiredUpdate: { version: wanted } } });
    await a.mustKubectl(['patch', 'clusterversion', 'version', '--type=merge', '-p', patch]);
  };
  const imported = async (wanted: string, program: string): Promise<void> => {
    const name = releaseFileName('x64');
    const { size } = await stat(program);
    const files = [{ name, architecture: 'x64', size, sha256: await digestOf(program) } as const];
    const manifest = { version: wanted, kubernetes: 'v1.36.0+hyperedge1', channels: [], files };
    await writeBundle(join(a.root, 'root/release'), manifest, new Map([[name, program]]), privateKey);
    await a.must('hyperedge', ['bundle', 'import', '/root/release'], { timeoutMs: 120_000 });
    await rm(join(a.root, 'root/release'));
  };
  const running = (): Promise<string[]> =>
    Promise.all(
      cluster.hosts.map(
        async (host) => JSON.parse((await host.inside('hyperedge', ['status', '-o', 'json'])).stdout).version,
      ),
    );
  const history = ({ status }: ClusterVersion): (string | undefined)[] =>
    (status?.history ?? []).map((each) => `${each.version} ${each.state}`);

  before(async () => {
    work = await mkdtemp(join(tmpdir(), 'he-upgrade-'));
    const build = [join(projectRoot, 'build/package.ts'), '--release', GOOD, '--output', join(work, GOOD)];
    const built = await run(process.execPath, build, { timeoutMs: 200_000 });
    assert.equal(built.code, 0, built.stderr);
    cluster = await LabCluster.formed({ masters: 3, nodes: 0 }, 'upgrade');
    a = cluster.host(0);
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    await a.mustKubectl([
      '-n',
      'openshift-config',
      'create',
      'configmap',
      'release-keys',
      `--from-literal=lab.pem=${pem}`,
    ]);
    for (const host of cluster.hosts) {
      const directory = join(host.root, 'etc/origin/bootstrap.yaml.d');
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, '50-updates.yaml'), DROP_IN, { mode: 0o600 });
    }
  });
  after(async () => {
    await cluster?.stop();
    await rm(work, { recursive: true, force: true });
  });

  test('updates one host after the other and keeps all writes', async () => {
    await imported(GOOD, join(work, GOOD));
    await eventually('an available update', 30_000, async () =>
      (await version()).status?.availableUpdates?.[0]?.version === GOOD ? true : undefined,
    );
    const loads = cluster.hosts.map((host) => ({ host, load: cluster.load(host, a) }));
    const began = performance.now();
    const reports: { readonly host: NspawnHost; readonly report: RequestReport }[] = [];
    try {
      await want(GOOD);
      await eventually('the end of the rollout', 2 * ROLLED_MS, async () =>
        history(await version())[0] === `${GOOD} Completed` ? true : undefined,
      );
    } finally {
      for (const { host, load } of loads) reports.push({ host, report: await load.stop() });
    }
    const tookMs = Math.round(performance.now() - began);
    cluster.line.note(`rolled out in ${tookMs} ms`);
    for (const { host, report } of reports) {
      const lost = await cluster.lostWrites(a, report);
      const windows = windowsOf(report);
      cluster.line.note(
        `client on ${host.name}: ${report.requests} requests, ${report.errors.length} errors in windows of ` +
          `${windows.join(', ') || 'none'} ms, slowest ${report.slowestMs} ms, ${report.written.length} writes, ${lost.length} lost`,
      );
      assert.deepEqual(lost, []);
      for (const each of windows) assert.ok(each <= ERRORS_MS, `errors for ${each} ms`);
    }
    assert.ok(tookMs <= ROLLED_MS, `${tookMs} ms`);
    assert.deepEqual(new Set(await running()), new Set([GOOD]));
    const operators = await a.mustKubectl(['get', 'co', '--no-headers']);
    for (const line of operators.trim().split('\n')) assert.match(line, /^\S+ +(0\.2\.0 +)?True +False +False/);
  });

  test('rolls back a release with a broken executable on the first host and does not install it on further hosts', async () => {
    const program = join(work, BROKEN);
    await copyFile('/bin/true', program);
    await imported(BROKEN, program);
    await want(BROKEN);
    const ended = await cluster.line.step(`${BROKEN} is given up`, () =>
      eventually('the end of the update', 240_000, async () => {
        const found = await version();
        return history(found)[0] === `${GOOD} Completed` && history(found)[1] === `${BROKEN} Partial`
          ? found
          : undefined;
      }),
    );
    const failing = ended.status?.conditions?.find(({ type }) => type === 'Failing');
    assert.match(
      failing?.message ?? '',
      /update to 0\.3\.0 was rolled back: host .* 0\.3\.0 was not healthy within 60 s/,
    );
    assert.deepEqual(new Set(await running()), new Set([GOOD]));
    await cluster.untilReady(a, cluster.hosts);
  });

  /** Durations of the periods with errors. */
  function windowsOf({ errors }: RequestReport): number[] {
    const windows: { from: number; to: number }[] = [];
    for (const { atMs } of errors) {
      const last = windows.at(-1);
      if (last !== undefined && atMs - last.to < APART_MS) last.to = atMs;
      else windows.push({ from: atMs, to: atMs });
    }
    return windows.map(({ from, to }) => Math.max(1, to - from));
  }
});
