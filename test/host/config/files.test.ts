import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { etcdConfigOf, masterConfigOf, nodeConfigOf } from '../../../src/host/config/generate.ts';
import { writeGenerated } from '../../../src/host/config/generated-file.ts';
import { readMasterConfig } from '../../../src/host/config/master-config.ts';
import { parseMasterLogLevel } from '../../../src/host/config/master-env.ts';
import { type NodeConfig, pairArgument, readNodeConfig, singleArgument } from '../../../src/host/config/node-config.ts';
import { settingsOf } from '../../../src/host/config/settings.ts';
import { kubeletConfigOf } from '../../../src/host/node/kubelet-config.ts';
import { DEFAULT_KUBELET_CONFIG } from '../../../src/kubelet/index.ts';
import { settingsOf as etcdSettingsOf, readFile as readEtcdFile } from '../../../src/store/config/index.ts';

const settings = settingsOf({
  root: '/r',
  bootstrapFile: '/r/etc/origin/bootstrap.yaml',
  host: {
    defaultRouteLink: 'eth0',
    byLink: [{ link: 'eth0', address: '10.0.0.7' }],
  },
});

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'config-'));
});
after(() => rm(directory, { recursive: true }));

test('updates a generated file only while the file is unedited', async () => {
  const path = join(directory, 'sub/generated.yaml');
  assert.equal(await writeGenerated(path, { a: 1 }), 'written');
  assert.equal(await writeGenerated(path, { a: 1 }), 'unchanged');
  assert.equal(await writeGenerated(path, { a: 2 }), 'written');
  await writeFile(path, (await readFile(path, 'utf8')).replace('a: 2', 'a: 3'));
  assert.equal(await writeGenerated(path, { a: 4 }), 'kept');
  assert.match(await readFile(path, 'utf8'), /a: 3/);
  await writeFile(path, '');
  assert.equal(await writeGenerated(path, { a: 4 }), 'written');
  await writeFile(path, 'a: 9');
  assert.equal(await writeGenerated(path, { a: 4 }), 'kept');
});

test('generates files that the strict parsers accept', async () => {
  const write = async (name: string, document: unknown): Promise<string> => {
    const path = join(directory, name);
    await writeGenerated(path, document);
    return path;
  };
  const master = masterConfigOf(settings);
  assert.deepEqual(await readMasterConfig(await write('master-config.yaml', master)), master);
  assert.equal(master.servingInfo.certFile, 'master.server.crt');
  assert.deepEqual(master.etcdClientInfo.urls, ['https://127.0.0.1:2379']);
  const output = new Map([
    ['storagemigration.k8s.io/v1beta1', true],
    ['api/alpha', false],
  ]);
  const switched = masterConfigOf({
    ...settings,
    embedded: { ...settings.embedded, metrics: false, runtimeConfig: output },
  });
  assert.deepEqual(switched.kubernetesMasterConfig?.apiServerArguments?.get('runtime-config'), [
    'storagemigration.k8s.io/v1beta1=true,api/alpha=false,metrics.k8s.io/v1beta1=false',
  ]);
  const etcd = etcdConfigOf(settings);
  const etcdFile = await write('etcd.conf.yaml', etcd);
  const { settings: store, warnings } = etcdSettingsOf(readEtcdFile(etcdFile, await readFile(etcdFile, 'utf8')), {
    fromFile: true,
    locate: (path) => path,
    defaultHost: undefined,
  });
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    [store.name, store.dataDirectory, store.listen.client[0]?.text, store.tls.client.certFile],
    [etcd.name, etcd['data-dir'], etcd['listen-client-urls'], etcd['client-transport-security']['cert-file']],
  );
  assert.equal(store.tls.client.requireCertificate, true);
  const node = nodeConfigOf(settings, 'cgroupfs');
  assert.deepEqual(await readNodeConfig(await write('node-config.yaml', node), node), { config: node, unknown: [] });
  const kubelet = kubeletConfigOf(settings, node, [{ protocol: 'TCP', port: 10_250 }], () => ['10.0.0.7']);
  assert.deepEqual(kubelet.reservedPorts, [{ protocol: 'TCP', port: 10_250 }]);
  assert.equal(kubelet.listen.port, 10_250);
  assert.equal(kubelet.maxPods, 250);
  assert.deepEqual(kubelet.nodeIps, ['10.0.0.7']);
  assert.equal(kubelet.seccompDefault, true);
  const withArgument = (value: string) =>
    kubeletConfigOf(settings, { ...node, kubeletArguments: { 'seccomp-default': [value] } }, [], () => [])
      .seccompDefault;
  assert.deepEqual([withArgument('true'), withArgument('false')], [true, false]);
  assert.throws(() => withArgument('no'), /kubeletArguments\.seccomp-default: "no" is neither true nor false/);
});

test('the error of a missing configuration file names the program that writes it', async () => {
  await assert.rejects(
    readMasterConfig(join(directory, 'none.yaml')),
    /none\.yaml does not exist; hyperedge run writes it/,
  );
});

test('OPTIONS in master.env takes precedence over DEBUG_LOGLEVEL, and errors name the line', () => {
  const level = (text: string): number | undefined => parseMasterLogLevel(text, 'master.env');
  assert.equal(level('OPTIONS=--loglevel=4\nDEBUG_LOGLEVEL=8\n'), 4);
  assert.equal(level('# x\n\nexport DEBUG_LOGLEVEL="8"\n'), 8);
  assert.equal(level("OPTIONS='--v=1 --loglevel=6'"), 6);
  assert.equal(level('OTHER=x\n'), undefined);
  assert.throws(() => level('A=1\nOPTIONS=--loglevel=11'), /master\.env:2: OPTIONS: "11" is not a log level/);
  assert.throws(() => level('what is this'), /master\.env:1: /);
});

test('validates kubelet arguments', () => {
  assert.deepEqual(
    pairArgument('f', 'node-labels', ['a=1,b=2', '__proto__=x']),
    Object.fromEntries([
      ['a', '1'],
      ['b', '2'],
      ['__proto__', 'x'],
    ]),
  );
  assert.throws(
    () => pairArgument('f', 'node-labels', ['a']),
    /f: kubeletArguments\.node-labels: "a" is not key=value/,
  );
  assert.throws(() => singleArgument('f', 'max-pods', ['1', '2']), /exactly one/);
});

test('reads eviction arguments as the kubelet’s flags', () => {
  const config = (kubeletArguments: NonNullable<NodeConfig['kubeletArguments']>) =>
    kubeletConfigOf(settings, { ...nodeConfigOf(settings, 'cgroupfs'), kubeletArguments }, [], () => []).eviction;
  assert.deepEqual(config({}), DEFAULT_KUBELET_CONFIG.eviction);
  assert.deepEqual(config({ 'eviction-hard': [''] }).thresholds, []);
  assert.deepEqual(
    config({
      'eviction-hard': ['memory.available<500Mi,nodefs.available<5%'],
      'eviction-soft': ['nodefs.available<20%'],
      'eviction-soft-grace-period': ['nodefs.available=1m30s'],
      'eviction-minimum-reclaim': ['nodefs.available=1Gi'],
      'eviction-pressure-transition-period': ['30s'],
      'eviction-max-pod-grace-period': ['60'],
    }),
    {
      thresholds: [
        { signal: 'memory.available', value: { quantity: 500 << 20 } },
        { signal: 'nodefs.available', value: { fraction: 0.05 }, minimumReclaim: { quantity: 1 << 30 } },
        {
          signal: 'nodefs.available',
          value: { fraction: 0.2 },
          gracePeriodMs: 90_000,
          minimumReclaim: { quantity: 1 << 30 },
        },
      ],
      pressureTransitionMs: 30_000,
      maxPodGraceSeconds: 60,
    },
  );
  for (const [given, wanted] of [
    [
      { 'eviction-hard': ['memory.available=1Gi'] },
      /kubeletArguments\.eviction-hard: "memory\.available=1Gi" is not key<value/,
    ],
    [{ 'eviction-hard': ['memory<1Gi'] }, /kubeletArguments\.eviction-hard: unsupported eviction signal memory/],
    [{ 'eviction-soft': ['nodefs.available<20%'] }, /kubeletArguments\.eviction-soft: grace period must be specified/],
    [{ 'eviction-pressure-transition-period': ['soon'] }, /"soon" is not a duration/],
    [{ 'eviction-max-pod-grace-period': ['1m'] }, /"1m" is not a whole number of seconds/],
  ] as const)
    assert.throws(() => config(given as never), { code: 'bad-config', message: wanted });
});
