import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { silentLog } from '../../../src/base/log.ts';
import { apiConfigOf } from '../../../src/host/apiserver/config.ts';
import { openEncryption } from '../../../src/host/apiserver/encryption-file.ts';
import { masterValues } from '../../../src/host/apiserver/server.ts';
import { bootstrapField } from '../../../src/host/config/bootstrap.ts';
import { settingsOf } from '../../../src/host/config/settings.ts';
import { allPorts, ownPorts } from '../../../src/host/network/own-ports.ts';
import { installHost } from '../../../src/host/run/prepare-files.ts';
import { parseConfig } from '../../../src/wire/strict-yaml.ts';

async function withRoot(body: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'install-'));
  try {
    await body(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

const settings = (root: string, yaml = '') =>
  settingsOf({
    root,
    bootstrapFile: 'bootstrap.yaml',
    file: parseConfig(`apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n${yaml}`, 'b', bootstrapField),
    host: { defaultRouteLink: 'eth0', byLink: [{ link: 'eth0', address: '10.0.0.7' }] },
  });
const options = { nowMs: Date.UTC(2026, 10, 20), cgroupDriver: 'cgroupfs', assets: undefined, log: silentLog };

test('writes all files of OKD at the first start, and no file at the second start', () =>
  withRoot(async (root) => {
    const first = await installHost(settings(root), options);
    assert.ok(first.issued.length > 10);
    assert.deepEqual(await installHost(settings(root), options), { issued: [], kept: [] });
    assert.deepEqual((await readdir(join(root, 'etc/origin/node/pods'))).toSorted(), [
      'apiserver.yaml',
      'controller.yaml',
      'etcd.yaml',
    ]);
    assert.equal(
      await readFile(join(root, 'etc/origin/master/master.env'), 'utf8'),
      'OPTIONS=--loglevel=2\nDEBUG_LOGLEVEL=2\n',
    );
    const server = new X509Certificate(await readFile(join(root, 'etc/origin/master/master.server.crt')));
    for (const ip of ['127.0.0.1', '10.0.0.7', '172.30.0.1']) assert.equal(server.checkIP(ip), ip);
    assert.ok(server.checkHost('kubernetes.default.svc.cluster.local'));
  }));

test('writes OKD’s static pods with names, containers, labels, host network, probes and read-only mounts except for data', () =>
  withRoot(async (root) => {
    await installHost(settings(root), options);
    const pod = async (file: string): Promise<Pod> =>
      parse(await readFile(join(root, 'etc/origin/node/pods', file), 'utf8'));
    const expected = { 'etcd.yaml': 'etcd', 'apiserver.yaml': 'api', 'controller.yaml': 'controllers' };
    for (const [file, component] of Object.entries(expected)) {
      const { metadata, spec } = await pod(file);
      const container = spec?.containers[0];
      assert.equal(metadata?.name, `master-${component}`);
      assert.equal(metadata?.namespace, 'kube-system');
      assert.equal(metadata?.labels?.['openshift.io/component'], component);
      assert.equal(spec?.hostNetwork, true);
      assert.equal(container?.name, component);
      assert.equal(container?.image, 'hyperedge.local/host-root');
      assert.ok(container?.livenessProbe !== undefined && container.resources?.requests !== undefined);
      assert.ok(container?.command?.at(-1) === component && container.args?.includes('--config'));
      const writable = container?.volumeMounts
        ?.filter((mount) => mount.readOnly !== true)
        .map((mount) => mount.mountPath);
      const expectedWritable = {
        etcd: ['var/lib/origin/openshift.local.etcd'],
        api: ['var/log/origin'],
        // Known hosts and SSH keys of hosts that Machines install.
        controllers: ['run/hyperedge/ssh'],
      };
      const diagnostics = 'var/lib/origin/diagnostics';
      const own = [...expectedWritable[component as keyof typeof expectedWritable], diagnostics];
      assert.deepEqual(
        writable,
        own.map((path) => join(root, path)),
      );
    }
  }));

test('static pods declare the ports in the configuration of their components, edited or not', () =>
  withRoot(async (root) => {
    const written = settings(root, 'ports: {api: 9443, etcd: 12379}\ngossip: {port: 17946}\n');
    await installHost(written, options);
    const portsOf = async (file: string): Promise<(number | undefined)[]> => {
      const { spec }: Pod = parse(await readFile(join(root, 'etc/origin/node/pods', file), 'utf8'));
      const ports = spec?.containers[0]?.ports ?? [];
      for (const each of ports) assert.deepEqual([each.hostPort, each.protocol], [each.containerPort, 'TCP']);
      return ports.map(({ hostPort }) => hostPort);
    };
    assert.deepEqual(await portsOf('apiserver.yaml'), [9443]);
    assert.deepEqual(await portsOf('controller.yaml'), [8444]);
    assert.equal((await portsOf('etcd.yaml'))[0], 12_379);
    const edit = async (path: string, from: RegExp, to: string): Promise<void> =>
      writeFile(path, (await readFile(path, 'utf8')).replace(from, to));
    await edit(written.paths.masterConfig, /0\.0\.0\.0:9443/, '0.0.0.0:9444');
    await edit(written.paths.masterConfig, /127\.0\.0\.1:8444/, '127.0.0.1:9445');
    await edit(written.paths.nodeConfig, /0\.0\.0\.0:10250/, '0.0.0.0:11250');
    await edit(written.paths.etcdConfig, /^name:/m, 'listen-metrics-urls: http://127.0.0.1:12381\nname:');
    await installHost(written, options);
    assert.deepEqual(await portsOf('apiserver.yaml'), [9444]);
    assert.deepEqual(await portsOf('controller.yaml'), [9445]);
    assert.ok((await portsOf('etcd.yaml')).includes(12_381));
    const tcp = (port: number) => ({ protocol: 'TCP', port });
    const router = [80, 443, 1936].map(tcp);
    assert.deepEqual((await ownPorts(written, silentLog)).host, [
      tcp(11_250),
      tcp(7_443),
      tcp(22_623),
      ...router,
      tcp(17_946),
      { protocol: 'UDP', port: 17_946 },
    ]);
    await edit(
      written.paths.masterConfig,
      /servicesNodePortRange: .*/,
      'servicesNodePortRange: 30000-32767\n  apiServerArguments: {secure-port: ["6443"]}',
    );
    assert.deepEqual((await ownPorts(written, silentLog)).api, [tcp(6443)]);
    await writeFile(written.paths.masterConfig, 'kind: [');
    assert.deepEqual((await ownPorts(written, silentLog)).api, [tcp(9443)]);
    const nodeOnly = { ...written, roles: new Set(['node'] as const), gossip: { ...written.gossip, enabled: false } };
    assert.deepEqual(allPorts(await ownPorts(nodeOnly, silentLog)), [tcp(11_250), tcp(7_443), ...router]);
  }));

test('uses a front-proxy client certificate whose issuer and name extension API servers accept', () =>
  withRoot(async (root) => {
    await installHost(settings(root), options);
    const file = join(root, 'etc/origin/master/master-config.yaml');
    const { config } = await apiConfigOf(await masterValues(file), {
      referredToBy: file,
      ownHost: true,
      soleWriter: true,
    });
    const certificate = new X509Certificate(config.proxyClient?.certificate ?? '');
    assert.ok(certificate.verify(new X509Certificate(config.requestHeader?.ca ?? '').publicKey));
    assert.ok(certificate.checkPrivateKey(createPrivateKey(config.proxyClient?.key ?? '')));
    assert.deepEqual(config.requestHeader?.allowedNames, [certificate.subject.replace('CN=', '')]);
  }));

test('creates an encryption key once and configures the API server if the bootstrap file enables encryption of secrets', () =>
  withRoot(async (root) => {
    const encrypting = settings(root, 'secretsEncryption: {provider: secretbox}\n');
    await installHost(encrypting, options);
    const file = join(root, 'etc/origin/master/encryption-config.yaml');
    const text = await readFile(file, 'utf8');
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    await installHost(encrypting, { ...options, nowMs: options.nowMs + 1000 });
    assert.equal(await readFile(file, 'utf8'), text);
    const values = await masterValues(join(root, 'etc/origin/master/master-config.yaml'));
    assert.equal(values.file('encryption-provider-config'), file);
    assert.equal(values.boolean('encryption-provider-config-automatic-reload'), true);
    const source = await openEncryption(file, { referredToBy: 'test', follow: false, log: silentLog });
    assert.deepEqual(source.current.resources[0]?.resources, ['secrets']);
    source.stop();
  }));

test('writes an etcd pod only with the role etcd, and removes the manifest of a removed role', () =>
  withRoot(async (root) => {
    await installHost(settings(root), options);
    await installHost(settings(root, 'storage: {endpoints: ["https://10.0.0.9:2379"]}\n'), options);
    assert.deepEqual((await readdir(join(root, 'etc/origin/node/pods'))).toSorted(), [
      'apiserver.yaml',
      'controller.yaml',
    ]);
    const config = parse(await readFile(join(root, 'etc/origin/master/master-config.yaml'), 'utf8'));
    assert.deepEqual(config.etcdClientInfo, { urls: ['https://10.0.0.9:2379'] });
  }));

test('mounts the scheduled snapshot directory into the store’s pod unless the fallback is disabled', () =>
  withRoot(async (root) => {
    const look = async (): Promise<{ arg: string | undefined; mount: unknown }> => {
      const pod: Pod = parse(await readFile(join(root, 'etc/origin/node/pods/etcd.yaml'), 'utf8'));
      const { args = [], volumeMounts = [] } = pod.spec?.containers[0] ?? {};
      const mount = volumeMounts.find(({ name }) => name === 'snapshots');
      const arg = args.includes('--snapshots') ? args[args.indexOf('--snapshots') + 1] : undefined;
      return { arg, mount: mount?.readOnly === true ? mount.mountPath : mount };
    };
    await installHost(settings(root), options);
    const usual = join(root, 'var/lib/origin/snapshots');
    assert.deepEqual(await look(), { arg: usual, mount: usual });
    const schedule = 'apiVersion: hyperedge.dev/v1\nkind: SnapshotSchedule\ndirectory: /mnt/usb\n';
    await writeFile(join(root, 'etc/origin/node/snapshot-schedule.yaml'), schedule);
    await installHost(settings(root), options);
    assert.deepEqual(await look(), { arg: '/mnt/usb', mount: '/mnt/usb' });
    await installHost(settings(root, 'etcd: {restoreDamaged: false}'), options);
    assert.deepEqual(await look(), { arg: undefined, mount: undefined });
  }));

test('a start keeps and reports edited configuration files', () =>
  withRoot(async (root) => {
    await installHost(settings(root), options);
    const path = join(root, 'etc/origin/node/node-config.yaml');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"250"', '"30"'));
    const manifest = join(root, 'etc/origin/node/pods/etcd.yaml');
    await writeFile(manifest, `${await readFile(manifest, 'utf8')}# mine\n`);
    assert.deepEqual((await installHost(settings(root), options)).kept.toSorted(), [path, manifest].toSorted());
    assert.match(await readFile(path, 'utf8'), /"30"/);
  }));
