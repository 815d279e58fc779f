/** Renewal of certificates while the host runs, and after it was off for longer than their lifetime. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentLog } from '../../src/base/log.ts';
import { issueCertificates } from '../../src/host/certificates/issue-certificates.ts';
import { loadSettings } from '../../src/host/config/settings.ts';
import { openTrustedTime } from '../../src/host/run/trusted-time.ts';
import { createAuthority, etcdFiles, loadIfPresent, masterFiles, nodeFiles } from '../../src/pki/index.ts';
import { Appliance, eventually, sleep } from './harness.ts';
import { helloImage, importHelloImage } from './images.ts';

const WATCHER = fileURLToPath(new URL('./store-watch.child.ts', import.meta.url));
const LIFE_S = 20;
const DAY_MS = 24 * 3600 * 1000;

const ticker = (): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'ticker' },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'ticker',
          image: helloImage,
          command: ['sh', '-c', 'i=0; while true; do echo tick $i; i=$((i+1)); sleep 1; done'],
        },
      ],
    },
  });

interface Stream {
  readonly child: ChildProcess;
  lines(): readonly string[];
}

function follow(child: ChildProcess): Stream {
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
  return { child, lines: () => text.split('\n').filter((line) => line !== '') };
}

/** All certificates of a host except authorities. */
function leaves(root: string): string[] {
  const master = masterFiles(root);
  const etcd = etcdFiles(root);
  const node = nodeFiles(root);
  const pairs = [
    ...[master.server, master.kubeletClient, master.etcdClient, master.aggregatorFrontProxy, master.admin],
    ...[master.controllers, master.scheduler, etcd.server, etcd.peer],
  ];
  return [...pairs.map(({ cert }) => cert), node.clientCurrent, node.serverCurrent];
}

async function serials(root: string): Promise<Map<string, string>> {
  const all = leaves(root).map(async (path) => [path, new X509Certificate(await readFile(path)).serialNumber] as const);
  return new Map(await Promise.all(all));
}

async function withHost(yaml: string, body: (host: Appliance) => Promise<void>): Promise<void> {
  const host = await Appliance.create();
  try {
    await mkdir(join(host.root, 'etc/origin'), { recursive: true });
    await writeFile(
      join(host.root, 'etc/origin/bootstrap.yaml'),
      `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n${yaml}`,
    );
    await body(host);
  } finally {
    await host.stop();
  }
}

test(
  'certificates of 20 s are renewed under a watch, a log stream and a store client that stay open',
  {
    timeout: 240_000,
  },
  () =>
    withHost(`certificates: { lifetime: ${LIFE_S}s }\n`, async (host) => {
      const scratch = await mkdtemp(join(tmpdir(), 'he-renewal-'));
      const streams: Stream[] = [];
      try {
        await host.start();
        await importHelloImage(host, scratch);
        await host.must(['apply', '-f', '-'], { input: ticker() });
        await host.must(['wait', '--for=condition=Ready', 'pod/ticker', '--timeout=60s']);
        const watch = follow(host.spawnInside('kubectl', ['get', 'configmaps', '-w', '--no-headers']));
        const logs = follow(host.spawnInside('kubectl', ['logs', '-f', 'ticker']));
        const store = follow(
          host.spawnInside(process.execPath, [WATCHER, host.root, '/registry/configmaps/default/probe']),
        );
        streams.push(watch, logs, store);
        await eventually('streams', 20_000, () =>
          store.lines().includes('watching') && logs.lines().length > 0 && watch.lines().length > 0 ? true : undefined,
        );
        const seen = new Map([...(await serials(host.root)).keys()].map((path) => [path, new Set<string>()]));
        const names: string[] = [];
        const beganMs = performance.now();
        while (performance.now() - beganMs < 3 * LIFE_S * 1000) {
          for (const [path, serial] of await serials(host.root)) seen.get(path)?.add(serial);
          const name = `probe-${names.length}`;
          await host.must(['create', 'configmap', name]);
          names.push(name);
          await sleep(3_000);
        }
        for (const [path, each] of seen) assert.ok(each.size >= 4, `${path}: ${each.size} certificates in a minute`);
        await eventually('the last event', 10_000, () =>
          watch.lines().some((line) => line.startsWith(`${names.at(-1)} `)) ? true : undefined,
        );
        for (const { child, lines } of streams) assert.equal(child.exitCode, null, lines().join('\n'));
        assert.deepEqual(
          watch.lines().flatMap((line) => /^probe-\d+/.exec(line) ?? []),
          names,
        );
        assert.deepEqual(
          store.lines().slice(1),
          names.map((name) => `/registry/configmaps/default/${name}`),
        );
        const ticks = logs.lines();
        assert.ok(ticks.length >= 3 * LIFE_S - 5, `${ticks.length} lines`);
        assert.deepEqual(
          ticks,
          [...ticks.keys()].map((index) => `tick ${index}`),
        );
        const { conditions } = JSON.parse(await host.must(['get', 'node', '-o', 'json'])).items[0].status;
        const ready = conditions.find(({ type }: { type: string }) => type === 'Ready');
        assert.equal(ready.status, 'True');
        // The Node has been Ready since before the first renewal.
        assert.ok(Date.now() - Date.parse(ready.lastTransitionTime) > 3 * LIFE_S * 1000);
        assert.doesNotMatch(host.output, /not renewed|not reloaded/);
      } finally {
        for (const { child } of streams) child.kill('SIGKILL');
        await rm(scratch, { recursive: true });
      }
    }),
);

/** Replaces all certificates of the host, including authorities, by expired ones. */
async function expire(root: string): Promise<void> {
  const settings = await loadSettings({ root });
  for (const path of leaves(root)) await rm(path);
  // Valid for one day after the release of this program.
  await issueCertificates(settings, { nowMs: 0, lifeMs: DAY_MS });
  const past = { notBeforeMs: 0, notAfterMs: Date.now() - 30 * DAY_MS };
  for (const [files, name] of [
    [masterFiles(root).ca, 'openshift-signer'],
    [masterFiles(root).frontProxyCa, 'openshift-aggregator-front-proxy'],
    [etcdFiles(root).signer, 'etcd-signer'],
  ] as const) {
    const authority = await loadIfPresent(files);
    const ended = await createAuthority(name, past, authority?.privateKey);
    await writeFile(files.cert, ended.certPem);
  }
}

test('recovers a host whose certificates and authorities have all expired', { timeout: 180_000 }, () =>
  withHost('', async (host) => {
    await host.start();
    await host.must(['create', 'configmap', 'kept']);
    await host.halt('SIGTERM');
    const floor = await readFile(join(host.root, 'var/lib/origin/time-floor'), 'utf8');
    assert.ok(Math.abs(Date.parse(floor.trim()) - Date.now()) < 300_000, floor);
    await expire(host.root);
    for (const path of leaves(host.root))
      assert.ok(new X509Certificate(await readFile(path)).validToDate.getTime() < Date.now(), path);
    await host.start();
    for (const path of leaves(host.root)) {
      const lifeMs = new X509Certificate(await readFile(path)).validToDate.getTime() - Date.now();
      assert.ok(lifeMs > 700 * DAY_MS, path);
    }
    await host.must(['get', 'configmap', 'kept']);
    assert.match(host.output, /certificate renewed path=\S*ca\.crt reason=expired/);
  }),
);

test('uses the time floor on disk after the clock was reset to 1970', async () => {
  const root = await mkdtemp(join(tmpdir(), 'he-floor-'));
  try {
    const file = join(root, 'time-floor');
    const later = Date.now() + 100 * DAY_MS;
    await writeFile(file, new Date(later).toISOString());
    const time = await openTrustedTime(file, silentLog);
    assert.equal(time.nowMs(), later);
    const [condition] = await time.conditions(new Set());
    assert.equal(condition?.type, 'ClockWrong');
    assert.match(condition?.message ?? '', /has been .* before; set it/);
  } finally {
    await rm(root, { recursive: true });
  }
});

/** Whether the API server accepts the token. */
async function isAccepted(host: Appliance, token: string): Promise<boolean> {
  const { caBundle } = masterFiles(host.root);
  const access = ['--server', 'https://127.0.0.1:8443', '--certificate-authority', caBundle, '--token', token];
  const ran = await host.kubectl([...access, 'auth', 'whoami', '-o', 'json'], { env: { KUBECONFIG: '/dev/null' } });
  if (ran.code !== 0 && !/Unauthorized|must be logged in/.test(ran.stderr)) throw new Error(ran.stderr);
  return ran.code === 0;
}

test(
  'rotates CAs and token keys under an open watch; old and new generation work until the last phase',
  {
    timeout: 300_000,
  },
  () =>
    withHost('', async (host) => {
      await host.start();
      const master = masterFiles(host.root);
      const copy = async (name: string): Promise<string> => {
        const path = join(host.root, name);
        await writeFile(path, await readFile(host.kubeconfig), { mode: 0o600 });
        return path;
      };
      const before = await copy('before.kubeconfig');
      const subject = (pem: Buffer): string => new X509Certificate(pem).issuer;
      const oldIssuer = subject(await readFile(master.server.cert));
      const watch = follow(host.spawnInside('kubectl', ['get', 'configmaps', '-w', '--no-headers']));
      const phase = async (name: string): Promise<void> => {
        const ran = await host.hyperedge(['ca', 'rotate', '--phase', name, '--root', host.root]);
        assert.equal(ran.code, 0, ran.stderr);
        await eventually(`the components follow ${name}`, 60_000, async () => {
          const published = await host.kubectl(['get', 'cm', 'kube-root-ca.crt', '-o', 'jsonpath={.data.ca\\.crt}']);
          const bundle = await readFile(master.caBundle, 'utf8');
          return published.stdout.trim() === bundle.trim() ? true : undefined;
        });
        // The API server checks its files every two seconds, the kubelet every ten.
        await sleep(12_000);
        await host.must(['create', 'configmap', `at-${name}`]);
        await host.must(['-n', 'kube-system', 'logs', '-l', 'openshift.io/component=etcd', '--tail=1']);
      };
      try {
        const early = await host.hyperedge(['ca', 'rotate', '--phase', 'reissue', '--root', host.root]);
        assert.equal(early.code, 1);
        assert.match(early.stderr, /there is no next authority; run "hyperedge ca rotate --phase new-ca" first/);
        const oldToken = (await host.must(['create', 'token', 'default'])).trim();
        await phase('new-ca');
        assert.equal(subject(await readFile(master.server.cert)), oldIssuer);
        await phase('reissue');
        assert.notEqual(subject(await readFile(master.server.cert)), oldIssuer);
        assert.notEqual(subject(await readFile(nodeFiles(host.root).clientCurrent)), oldIssuer);
        const newToken = (await host.must(['create', 'token', 'default'])).trim();
        assert.deepEqual(await Promise.all([oldToken, newToken].map((token) => isAccepted(host, token))), [true, true]);
        // The old client only trusts the old authority, so it rejects the new server certificate.
        const oldClient = await host.kubectl(['--kubeconfig', before, '--insecure-skip-tls-verify', 'get', 'nodes']);
        assert.equal(oldClient.code, 0, oldClient.stderr);
        await phase('finish');
        const refused = await host.kubectl(['--kubeconfig', before, '--insecure-skip-tls-verify', 'get', 'nodes']);
        assert.notEqual(refused.code, 0, refused.stdout);
        assert.deepEqual(await Promise.all([oldToken, newToken].map((token) => isAccepted(host, token))), [
          false,
          true,
        ]);
        assert.equal(watch.child.exitCode, null, watch.lines().join('\n'));
        const names = watch.lines().flatMap((line) => /^at-\S+/.exec(line) ?? []);
        assert.deepEqual(names, ['at-new-ca', 'at-reissue', 'at-finish']);
        assert.match(await host.must(['get', 'nodes', '--no-headers']), / Ready /);
        assert.equal((await readFile(etcdFiles(host.root).ca, 'utf8')).split('BEGIN CERTIFICATE').length, 2);
      } finally {
        watch.child.kill('SIGKILL');
      }
    }),
);
