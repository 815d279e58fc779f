/**
 * Power cuts at random times while a host is updated to another version and back. The disk loses unsynced data. After
 * each cut its files must be old or new; after each stage it must have recovered automatically with all acknowledged
 * writes. Run by `npm run test:lab`. `HYPEREDGE_LAB_CUTS` is the number of cuts; `HYPEREDGE_LAB_SEED` repeats their
 * times.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { generateKeyPairSync, randomInt } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { releaseFileName } from '../../src/api/releases/manifest.ts';
import type { ClusterVersion } from '../../src/openshift/operators/kinds/config/types.ts';
import { parseSwitchRecord } from '../../src/openshift/updates/core/port.ts';
import { digestOf, writeBundle } from '../../src/openshift/updates/io/index.ts';
import { eventually, executable, projectRoot, run, sleep } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';
import type { RequestReport } from './support/requests.child.ts';
import { succeed } from './support/rootfs.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

/** Set in the child process that runs the test in its own mount namespace. */
const ALONE = 'HYPEREDGE_LAB_ALONE';
const CUTS = Number(process.env['HYPEREDGE_LAB_CUTS'] ?? 50);
const SEED = Number(process.env['HYPEREDGE_LAB_SEED'] ?? randomInt(1, 1 << 30));
/** Cuts between two complete checks of the cluster. Files are checked after each cut. */
const STAGE = 5;
const VERSIONS = ['0.2.0', '0.3.0'] as const;
const UPDATED_MS = 300_000;
/** A slow machine starts no further stage after this time. */
const LIMIT_MS = 14 * 60_000;
const LOAD_MS = 3_000;
const NAME = /^hyperedge-(\d+\.\d+\.\d+)$/;

if (process.env[ALONE] === undefined)
  test('the power-cut test runs in a separate mount namespace', {
    skip: missing ?? false,
    timeout: 1_790_000,
  }, async ({ signal }) => {
    const args = ['--mount', '--propagation', 'private', process.execPath, import.meta.filename];
    const child = spawn('unshare', args, { stdio: 'inherit', env: { ...process.env, [ALONE]: '1' } });
    signal.addEventListener('abort', () => child.kill('SIGTERM'));
    process.once('SIGTERM', () => child.kill('SIGTERM'));
    const code = await new Promise((resolve) => child.once('exit', resolve));
    assert.equal(code, 0);
  });
else
  describe('power cuts during an update', { skip: missing ?? false, timeout: 1_780_000 }, () => {
    let cluster: LabCluster;
    let host: NspawnHost;
    let work = '';
    /** SHA-256 of the executable of each version. */
    const digests = new Map<string, string>();
    const reports: RequestReport[] = [];
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    let state = SEED;
    const random = (): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };

    const version = async (): Promise<ClusterVersion> =>
      JSON.parse(await host.mustKubectl(['get', 'clusterversion', 'version', '-o', 'json', '--request-timeout=5s']));
    const patch = (desiredUpdate: object | null): Promise<string> => {
      const body = JSON.stringify({ spec: { desiredUpdate } });
      return host.mustKubectl(['patch', 'clusterversion', 'version', '--type=merge', '-p', body]);
    };
    const latest = async () => (await version()).status?.history?.[0];
    /** Waits until no update is in progress and returns the version. */
    const settled = (what: string): Promise<string> =>
      eventually(what, UPDATED_MS, async () => {
        const found = await latest().catch(() => undefined);
        return found?.state === 'Completed' ? found.version : undefined;
      });
    /** Starts an update to the other version. */
    const updateToOther = async (): Promise<string> => {
      const present = (await latest())?.version;
      const wanted = present === VERSIONS[0] ? VERSIONS[1] : VERSIONS[0];
      // An abandoned update is only started again after a change.
      await patch(null);
      await patch({ version: wanted, force: true });
      await eventually(`an update to ${wanted}`, 60_000, async () =>
        (await latest())?.version === wanted ? true : undefined,
      );
      return wanted;
    };
    const imported = async (wanted: string, program: string): Promise<void> => {
      const name = releaseFileName('x64');
      const { size } = await stat(program);
      const sha256 = await digestOf(program);
      digests.set(wanted, sha256);
      const files = [{ name, architecture: 'x64', size, sha256 } as const];
      const manifest = { version: wanted, kubernetes: 'v1.36.0+hyperedge1', channels: [], files };
      await writeBundle(join(host.root, 'root/release'), manifest, new Map([[name, program]]), privateKey);
      await host.must('hyperedge', ['bundle', 'import', '--force', '/root/release'], { timeoutMs: 120_000 });
      await rm(join(host.root, 'root/release'));
    };

    before(async () => {
      console.log(`HYPEREDGE_LAB_SEED=${SEED} HYPEREDGE_LAB_CUTS=${CUTS}`);
      work = await mkdtemp(join(tmpdir(), 'he-cuts-'));
      for (const each of VERSIONS) {
        const build = [join(projectRoot, 'build/package.ts'), '--release', each, '--output', join(work, each)];
        const built = await run(process.execPath, build, { timeoutMs: 200_000 });
        assert.equal(built.code, 0, built.stderr);
      }
      cluster = await LabCluster.create(1, 'cuts', { disk: true });
      host = cluster.host(0);
      await cluster.install(host);
      await cluster.untilReady(host, [host]);
      digests.set('0.1.0', await digestOf(executable));
      const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
      const keys = ['create', 'configmap', 'release-keys', `--from-literal=lab.pem=${pem}`];
      await host.mustKubectl(['-n', 'openshift-config', ...keys]);
      const directory = join(host.root, 'etc/origin/bootstrap.yaml.d');
      await mkdir(directory, { recursive: true });
      const dropIn = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nupdates: {healthyWithin: 120s}\n';
      await writeFile(join(directory, '50-updates.yaml'), dropIn, { mode: 0o600 });
      for (const each of VERSIONS) await imported(each, join(work, each));
      // Data written by the test itself must survive.
      await succeed('sync', ['-f', host.directoryOfState]);
    });
    after(async () => {
      await cluster?.stop();
      await rm(work, { recursive: true, force: true });
    });

    /** Checks what the next boot finds: links to complete executables of known releases, and complete records only. */
    async function checkFiles(): Promise<string> {
      const directory = join(host.root, 'usr/local/bin');
      const found: string[] = [];
      for (const name of await readdir(directory)) {
        const match = NAME.exec(name)?.[1];
        // An incomplete copy is never started, and the next copy replaces it.
        if (match === undefined) continue;
        assert.equal(
          await digestOf(join(directory, name)),
          digests.get(match),
          `${name} is not the executable of ${match}`,
        );
        found.push(match);
      }
      const target = basename(await readlink(join(directory, 'hyperedge')));
      const linked = NAME.exec(target)?.[1];
      assert.ok(linked !== undefined && found.includes(linked), `hyperedge is a link to ${target}; there are ${found}`);
      const guard = await readlink(join(directory, 'hyperedge-guard')).catch(() => undefined);
      assert.ok(guard === undefined || found.includes(NAME.exec(basename(guard))?.[1] ?? ''), `guard is ${guard}`);
      const text = await readFile(join(host.root, 'var/lib/origin/update/record.json'), 'utf8').catch(() => undefined);
      const stored = await readFile(join(host.directoryOfState, 'update/record.json'), 'utf8').catch(() => text);
      const record = parseSwitchRecord(stored, 'record.json');
      return `${linked}, ${record === undefined ? 'no record' : `${record.from} to ${record.to} ${record.phase}`}`;
    }

    async function cut(delayMs: number): Promise<string> {
      await sleep(Math.max(0, delayMs - LOAD_MS));
      const load = cluster.load(host, host);
      try {
        await sleep(Math.min(delayMs, LOAD_MS));
        await host.cutPower();
      } finally {
        // If the client had not yet read its credentials, it has written nothing.
        const report = await load.stop().catch(() => undefined);
        if (report !== undefined) reports.push(report);
      }
      await host.readDisk();
      const found = await checkFiles();
      await host.boot();
      return found;
    }

    async function checkCluster(): Promise<void> {
      await cluster.untilReady(host, [host], UPDATED_MS);
      const running = await settled('the end of the update');
      // On a busy machine, the host process may not answer within the time limit of `status` right after the update.
      const status = await eventually('the status of the host', UPDATED_MS, async () =>
        JSON.parse(await host.must('hyperedge', ['status', '-o', 'json'])),
      );
      assert.equal(status.version, running);
      let writes = 0;
      for (const report of reports.splice(0)) {
        assert.deepEqual(await cluster.lostWrites(host, report), []);
        writes += report.written.length;
      }
      await host.must('hyperedge', ['snapshot', 'save', '/root/check.db'], { timeoutMs: 60_000 });
      await host.must('hyperedge', ['snapshot', 'status', '/root/check.db'], { timeoutMs: 60_000 });
      await host.must('rm', ['/root/check.db']);
      await host.mustKubectl(['delete', 'configmaps', '-n', 'default', '-l', 'load', '--wait=false'], {
        timeoutMs: 120_000,
      });
      cluster.line.note(`${running} runs, all ${writes} acknowledged writes are there`);
    }

    test(`a host recovers from ${CUTS} power cuts with all files of the old or all files of the new release`, async () => {
      await updateToOther();
      const { ms } = await cluster.line.timed('an update without a cut', () => settled('an update'));
      const began = performance.now();
      let done = 0;
      while (done < CUTS && (done === 0 || performance.now() - began < LIMIT_MS)) {
        const to = await updateToOther();
        cluster.line.note(`update to ${to}`);
        for (let inStage = 0; inStage < STAGE && done < CUTS; inStage++, done++) {
          // The first cut of a stage is during the update, later ones possibly during the following boot.
          const delayMs = Math.round(random() * ms * (inStage === 0 ? 1 : 1.5));
          const found = await cut(delayMs);
          cluster.line.note(`cut ${done + 1} after ${delayMs} ms: ${found}`);
        }
        await cluster.line.step('the host is back', checkCluster);
      }
      cluster.line.note(`${done} of ${CUTS} cuts in ${Math.round((performance.now() - began) / 1000)} s`);
    });
  });
