import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { settingsOf } from '../../../src/host/config/settings.ts';
import { diffRevisions, listRevisions, operandNamed, rollBack } from '../../../src/host/openshift/revision-archive.ts';
import { operandFiles } from '../../../src/host/openshift/revision-inputs.ts';
import { installed } from '../../../src/openshift/revisions/core/index.ts';
import type { OperandFiles } from '../../../src/openshift/revisions/index.ts';

const CONFIG = `servingInfo: {certFile: master.server.crt, keyFile: master.server.key}
kubernetesMasterConfig:
  apiServerArguments:
    admission-control-config-file: [admission.yaml]
    encryption-provider-config: [encryption-config.yaml]
masterClients: {openshiftLoopbackKubeConfig: openshift-master.kubeconfig}
controllerConfig: {signer: {certFile: ca.crt, keyFile: ca.key}}
`;

let root: string;
let api: OperandFiles;
let controllers: OperandFiles;
const master = (name: string): string => join(root, 'etc/origin/master', name);

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-archive-'));
  for (const directory of ['etc/origin/master', 'etc/etcd', 'etc/origin/node/pods'])
    await mkdir(join(root, directory), { recursive: true });
  const files = {
    'master-config.yaml': CONFIG,
    'master.env': 'OPTIONS=--loglevel=2\n',
    'master.server.crt': 'certificate',
    'master.server.key': 'key',
    'admission.yaml': `plugins: [{name: A, path: ${master('plugin.yaml')}}]\n`,
    'plugin.yaml': 'a: 1\n',
    'encryption-config.yaml': 'secret\n',
    'openshift-master.kubeconfig': 'kubeconfig',
    'kube-scheduler.kubeconfig': 'kubeconfig',
    'ca.crt': 'ca',
    'ca.key': 'ca key',
    'admin.kubeconfig': 'admin',
    'outbound.json': '{"httpsProxy":"http://u:p@proxy.lab:3128","noProxy":[]}',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(master(name), text, { mode: 0o600 });
  const settings = settingsOf({
    root,
    bootstrapFile: 'bootstrap.yaml',
    host: {
      defaultRouteLink: undefined,
      byLink: [],
    },
  });
  const all = operandFiles(settings);
  [api, controllers] = [all.get('kube-apiserver'), all.get('kube-controller-manager')] as [OperandFiles, OperandFiles];
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** Whether a change of the file affects the component, and whether it requires a restart. */
async function effect(of: OperandFiles, name: string): Promise<string> {
  const before = await of.inputs();
  const text = await readFile(master(name), 'utf8');
  await writeFile(master(name), `${text} `);
  const now = await of.inputs();
  await writeFile(master(name), text);
  return now.digest === before.digest ? 'none' : now.restartDigest === before.restartDigest ? 'reload' : 'restart';
}

test('reports for each component which changed files cause a restart, a reload or no action', async () => {
  const of = async (operand: OperandFiles): Promise<string[]> => {
    const names = ['master-config.yaml', 'master.env', 'admission.yaml', 'plugin.yaml', 'master.server.crt'];
    const more = [
      'encryption-config.yaml',
      'openshift-master.kubeconfig',
      'ca.key',
      'admin.kubeconfig',
      'outbound.json',
    ];
    const effects: string[] = [];
    for (const name of [...names, ...more]) effects.push(await effect(operand, name));
    return effects;
  };
  assert.deepEqual(await of(api), [
    ...['restart', 'restart', 'restart', 'restart', 'reload'],
    ...['reload', 'none', 'none', 'none', 'restart'],
  ]);
  assert.deepEqual(await of(controllers), [
    ...['restart', 'restart', 'none', 'none', 'reload'],
    ...['none', 'reload', 'reload', 'none', 'none'],
  ]);
});

test('a revision includes a configuration file that is not valid YAML', async () => {
  const before = (await api.inputs()).files;
  await writeFile(master('master-config.yaml'), `${CONFIG}a: [`);
  const { files } = await api.inputs();
  assert.notEqual(files.get('master/master-config.yaml'), before.get('master/master-config.yaml'));
  assert.equal(files.get('master/admission.yaml'), before.get('master/admission.yaml'));
});

test('applies flags and log level from operator settings', async () => {
  const overlay = {
    logLevel: 'Debug',
    unsupportedConfigOverrides: { apiServerArguments: { 'event-ttl': ['2h'] } },
  };
  await api.keep(2, JSON.stringify(overlay));
  await api.apply(2);
  const active = (name: string) => readFile(join(root, 'var/lib/origin/static-pod-resources/api/master', name), 'utf8');
  assert.match(await active('master-config.yaml'), /event-ttl:\s*\[? ?-? ?2h/);
  assert.match(await active('master-config.yaml'), /admission-control-config-file/);
  assert.equal(await active('master.env'), 'OPTIONS=--loglevel=2\nOPTIONS=--loglevel=4\n');
  assert.equal(await readFile(master('master.env'), 'utf8'), 'OPTIONS=--loglevel=2\n');
});

test('lists, compares and restores revisions of the control plane', async () => {
  const revision = { digest: '', restartDigest: '', overlay: '', reason: 'because', atMs: 0, outcome: 'good' } as const;
  await api.keep(1, '{"logLevel":"Debug"}');
  await api.writeState(installed(await api.readState(), { ...revision, revision: 1 }, false));
  await writeFile(master('plugin.yaml'), 'a: 2\nb: 3\n');
  await writeFile(master('master.server.key'), 'another key');
  await writeFile(master('outbound.json'), '{"noProxy":[]}');
  assert.deepEqual(await listRevisions(root, operandNamed('kube-apiserver')), [
    {
      component: 'kube-apiserver',
      revision: 1,
      state: 'good',
      current: true,
      created: '1970-01-01T00:00:00Z',
      reason: 'because',
    },
  ]);
  assert.deepEqual(await diffRevisions(root, 'kube-apiserver', 1, undefined), [
    { name: 'master/master.server.key', change: 'changed' },
    { name: 'master/outbound.json', change: 'changed' },
    { name: 'master/plugin.yaml', change: 'changed', lines: ['-a: 1', '+a: 2', '+b: 3'] },
  ]);
  assert.deepEqual(await rollBack(root, 'kube-apiserver', 1, false), [master('outbound.json'), master('plugin.yaml')]);
  assert.equal(await readFile(master('plugin.yaml'), 'utf8'), 'a: 1\n');
  assert.equal(await readFile(master('master.server.key'), 'utf8'), 'another key');
  assert.equal(await readFile(master('master.env'), 'utf8'), 'OPTIONS=--loglevel=2\n', 'without the settings');
  assert.deepEqual(await rollBack(root, 'kube-apiserver', 1, true), [master('master.server.key')]);
  await assert.rejects(rollBack(root, 'kube-apiserver', 9, false), /revision 9 is not on this host/);
  assert.throws(() => operandNamed('api'), /no such component; give one of etcd, kube-apiserver/);
});
