/** Installation of a blank host by a master over SSH, with OpenSSH on both sides. Run by `npm run test:lab`. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually, sleep } from '../e2e/harness.ts';
import { LabCluster } from './support/lab-cluster.ts';
import { type NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';
import { succeed } from './support/rootfs.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

const NAMESPACE = 'openshift-machine-api';
const IN = ['-n', NAMESPACE];
/** A host with an error is inspected again every 30 s. */
const INSPECTED_MS = 60_000;
const INSTALLED_MS = 240_000;
const PARTIAL = 'usr/local/bin/hyperedge.new';

interface Keys {
  readonly directory: string;
  readonly login: string;
  readonly unknownKey: string;
  readonly hostKey: string;
  readonly otherHostKey: string;
}

async function keyPair(directory: string, name: string): Promise<{ readonly key: string; readonly pub: string }> {
  const path = join(directory, name);
  await succeed('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', path]);
  return { key: await readFile(path, 'utf8'), pub: (await readFile(`${path}.pub`, 'utf8')).trim() };
}

/** Creates a host key, and a login key that the host accepts for root. */
async function keysFor(host: NspawnHost): Promise<Keys> {
  const directory = await mkdtemp(join(tmpdir(), 'he-ssh-'));
  const login = await keyPair(directory, 'login');
  const unknownKey = await keyPair(directory, 'unknown');
  const other = await keyPair(directory, 'other');
  await mkdir(join(host.root, 'root/.ssh'), { recursive: true, mode: 0o700 });
  await writeFile(join(host.root, 'root/.ssh/authorized_keys'), `${login.pub}\n`, { mode: 0o600 });
  await host.must('sh', ['-c', 'rm -f /etc/ssh/ssh_host_* && ssh-keygen -A && systemctl restart ssh']);
  const hostKey = await host.must('cat', ['/etc/ssh/ssh_host_ed25519_key.pub']);
  return { directory, login: login.key, unknownKey: unknownKey.key, hostKey: hostKey.trim(), otherHostKey: other.pub };
}

describe('installation over SSH', { skip: missing ?? false }, () => {
  let cluster: LabCluster;
  let master: NspawnHost;
  let blank: NspawnHost;
  let keys: Keys;

  before(async () => {
    cluster = await LabCluster.create(2, 'installation over SSH', { ssh: true });
    master = cluster.host(0);
    blank = cluster.host(1);
    await cluster.line.step('master installed', () => cluster.install(master));
    keys = await keysFor(blank);
  });
  after(async () => {
    await cluster?.stop();
    if (keys !== undefined) await rm(keys.directory, { recursive: true, force: true });
  });

  const apply = async (...objects: readonly object[]): Promise<void> => {
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    const applied = await master.kubectl(['apply', '-f', '-'], { input: JSON.stringify(list) });
    assert.equal(applied.code, 0, applied.stderr);
  };
  const credentials = (key: string, hostKey: string): object => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'rack', namespace: NAMESPACE },
    stringData: { 'ssh-privatekey': key, 'ssh-hostkey': hostKey },
  });
  const inventory = (address: string): object => ({
    apiVersion: 'metal3.io/v1alpha1',
    kind: 'BareMetalHost',
    metadata: { name: blank.name, namespace: NAMESPACE, labels: { rack: '1' } },
    spec: { online: true, bmc: { address, credentialsName: 'rack' } },
  });
  const read = async <T>(kind: string, name: string): Promise<T> =>
    JSON.parse(await master.mustKubectl(['get', kind, name, ...IN, '-o', 'json'])) as T;
  interface Host {
    readonly status?: {
      readonly errorType?: string;
      readonly errorMessage?: string;
      readonly provisioning?: { readonly state: string };
    };
  }
  const registrationError = (what: string, expected: RegExp): Promise<true> =>
    eventually(what, INSPECTED_MS, async () => {
      const { status } = await read<Host>('bmh', blank.name);
      return status?.errorType === 'registration error' && expected.test(status.errorMessage ?? '') ? true : undefined;
    });
  interface Machine {
    readonly metadata: { readonly name: string };
    readonly status?: {
      readonly phase?: string;
      readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
    };
  }
  const machine = async (): Promise<Machine | undefined> =>
    (JSON.parse(await master.mustKubectl(['get', 'machines', ...IN, '-o', 'json'])) as { items: Machine[] }).items[0];

  test('an installation over SSH reports a wrong host key or a failed login, and is retried', {
    timeout: 200_000,
  }, async () => {
    const address = `ssh://root@${blank.address}:22`;
    await apply(credentials(keys.login, keys.otherHostKey), inventory(address));
    await registrationError('wrong host key', /ssh:\/\/root@192\.0\.2\.\d+:22: Host key verification failed/);
    await apply(credentials(keys.unknownKey, keys.hostKey));
    await registrationError('wrong login', /ssh:\/\/root@192\.0\.2\.\d+:22: .*Permission denied \(publickey/);
    await apply(credentials(keys.login, keys.hostKey));
    await eventually('an inspected host', INSPECTED_MS, async () => {
      const { status } = await read<Host>('bmh', blank.name);
      return status?.provisioning?.state === 'available' && status.errorType === undefined ? true : undefined;
    });
    assert.equal((await blank.inside('test', ['-e', '/usr/local/bin/hyperedge'])).code, 1, 'nothing is installed yet');
  });

  test('an installation over SSH is retried after a lost connection until it succeeds', {
    timeout: INSTALLED_MS + 60_000,
  }, async () => {
    await apply({
      apiVersion: 'machine.openshift.io/v1beta1',
      kind: 'MachineSet',
      metadata: { name: 'rack', namespace: NAMESPACE },
      spec: {
        replicas: 1,
        selector: { matchLabels: { set: 'rack' } },
        template: {
          metadata: { labels: { set: 'rack' } },
          spec: { providerSpec: { value: { hostSelector: { matchLabels: { rack: '1' } }, roles: ['node'] } } },
        },
      },
    });
    await eventually('a copy in progress', 60_000, async () => {
      const found = await stat(join(blank.root, PARTIAL)).catch(() => undefined);
      return found !== undefined && found.size > 0 ? true : undefined;
    });
    // Kills sshd and all its sessions.
    await blank.must('systemctl', ['kill', '--signal=KILL', 'ssh']);
    const broken = await eventually('the reason as a condition', 60_000, async () => {
      const found = (await machine())?.status;
      const condition = found?.conditions?.find(({ type }) => type === 'MachineCreation');
      return condition === undefined ? undefined : { phase: found?.phase, ...condition };
    });
    assert.deepEqual([broken.phase, broken.status], ['Provisioning', 'False']);
    assert.match(broken.message ?? '', /ssh:\/\/root@192\.0\.2\.\d+:22: ./);
    cluster.line.note(`broken off: ${broken.message}`);
    await blank.must('systemctl', ['start', 'ssh']);
    await cluster.line.step('installed after the connection broke', () =>
      eventually('a machine that runs', INSTALLED_MS, async () =>
        (await machine())?.status?.phase === 'Running' ? true : undefined,
      ),
    );
    await cluster.untilReady(master, cluster.hosts);
    const created = (await machine())?.status?.conditions?.find(({ type }) => type === 'MachineCreation');
    assert.equal(created?.status, 'True');
    const events = await master.mustKubectl(['get', 'events', ...IN, '-o', 'jsonpath={.items[*].reason}']);
    assert.match(events, /FailedProvision/);
    const left = await blank.must('sh', [
      '-c',
      'ls /run/hyperedge-bootstrap.yaml /usr/local/bin/hyperedge.new 2>/dev/null; true',
    ]);
    assert.equal(left, '');
    assert.equal((await master.must('sh', ['-c', 'ls /run/hyperedge/ssh'])).trim(), '', 'the key is removed');
  });

  test('wipes the host of a deleted machine over SSH and releases it', { timeout: 200_000 }, async () => {
    await master.mustKubectl(['scale', 'machineset', 'rack', ...IN, '--replicas=0']);
    await cluster.line.step('host wiped', () =>
      eventually('no machine', 150_000, async () => ((await machine()) === undefined ? true : undefined)),
    );
    await eventually('a free host', INSPECTED_MS, async () =>
      (await read<Host>('bmh', blank.name)).status?.provisioning?.state === 'available' ? true : undefined,
    );
    await sleep(500);
    assert.notEqual((await blank.inside('systemctl', ['is-active', 'hyperedge'])).stdout.trim(), 'active');
    assert.deepEqual(await cluster.readyNodes(master), [master.name]);
  });
});
