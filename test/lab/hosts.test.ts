/**
 * Three hosts under systemd whose bootstrap files form one store and one control plane: power loss, a disconnected
 * cable, loss of the majority. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually, executable, run } from '../e2e/harness.ts';
import { Lan } from './support/lan.ts';
import { NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

/** Files that the guide copies from the first host to the others before they start. */
const SHARED = [
  'etc/etcd/ca',
  ...[
    'ca.crt',
    'ca.key',
    'front-proxy-ca.crt',
    'front-proxy-ca.key',
    'serviceaccounts.private.key',
    'serviceaccounts.public.key',
  ].map((name) => `etc/origin/master/${name}`),
];
const COUNT = 3;

interface Member {
  readonly name: string;
  readonly state: string;
  readonly role: string;
}

describe('three hosts with systemd', { skip: missing ?? false }, () => {
  let lan: Lan;
  const hosts: NspawnHost[] = [];

  before(async () => {
    lan = await Lan.create();
    for (let i = 0; i < COUNT; i++) hosts.push(await NspawnHost.create((line) => console.log(line), lan));
    const cluster = hosts.map(({ name, address }) => `    ${name}: https://${address}:2380\n`).join('');
    const ring = hosts.map(({ address }) => address).join(', ');
    const keyring = await run(executable, ['gossip', 'keygen']);
    for (const host of hosts) {
      await write(host, 'etc/origin/node/gossip-keyring.json', keyring.stdout, 0o600);
      await write(
        host,
        'etc/origin/bootstrap.yaml',
        `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nnode: {ip: ${host.address}}\netcd:\n  initialCluster:\n${cluster}gossip: {join: [${ring}]}\n`,
      );
    }
    await Promise.all(hosts.map((host) => host.boot()));
  });

  after(async () => {
    for (const host of hosts) await host.stop();
    await lan?.stop();
  });

  async function write(host: NspawnHost, path: string, text: string, mode = 0o644): Promise<void> {
    await mkdir(join(host.root, path, '..'), { recursive: true });
    await writeFile(join(host.root, path), text, { mode });
  }

  async function copy(from: NspawnHost, to: NspawnHost, path: string): Promise<void> {
    await mkdir(join(to.root, path, '..'), { recursive: true });
    await cp(join(from.root, path), join(to.root, path), { recursive: true });
  }

  async function members(host: NspawnHost): Promise<Member[]> {
    const { stdout } = await host.inside('hyperedge', ['members', '-o', 'json'], { timeoutMs: 10_000 });
    return stdout === '' ? [] : JSON.parse(stdout);
  }

  async function allWell(timeoutMs: number): Promise<void> {
    for (const host of hosts)
      await eventually(`three members as ${host.name} sees them`, timeoutMs, async () =>
        (await members(host)).filter(({ state }) => state === 'ok').length === COUNT ? true : undefined,
      );
  }

  /** Waits until a write through `host` succeeds. Returns the milliseconds that this took. */
  async function writable(host: NspawnHost, name: string): Promise<number> {
    const begin = performance.now();
    await eventually(`a write by ${host.name}`, 30_000, async () => {
      const ran = await host.kubectl(['create', 'configmap', name, '--from-literal=k=v', '--request-timeout=5s'], {
        timeoutMs: 10_000,
      });
      return ran.code === 0 || /already exists/.test(ran.stderr) ? true : undefined;
    });
    return performance.now() - begin;
  }

  const sees = async (host: NspawnHost, name: string): Promise<void> => {
    await eventually(`${name} at ${host.name}`, 10_000, async () =>
      (await host.kubectl(['get', 'configmap', name])).code === 0 ? true : undefined,
    );
  };

  /**
   * Waits until the endpoints of the service `kubernetes` are these hosts. An endpoint expires some time after its
   * server has stopped.
   */
  async function leadsTo(queriedHost: NspawnHost, expected: readonly NspawnHost[]): Promise<void> {
    const path = 'jsonpath={.subsets[*].addresses[*].ip}';
    const addresses = expected.map(({ address }) => address).sort();
    await eventually(`the kubernetes service leads to ${addresses.join()}`, 30_000, async () =>
      (await queriedHost.kubectl(['get', 'endpoints', 'kubernetes', '-o', path])).stdout === addresses.join(' ')
        ? true
        : undefined,
    );
  }

  async function leader(): Promise<NspawnHost> {
    return eventually('a leader', 10_000, async () => {
      for (const host of hosts) {
        const leads = (await members(host).catch((): Member[] => [])).find(({ role }) => role === 'leader');
        const found = hosts.find(({ name }) => name === leads?.name);
        if (found !== undefined) return found;
      }
      return undefined;
    });
  }

  test('three hosts with systemd form one store whose members all respond', async () => {
    const [first, ...others] = hosts as [NspawnHost, ...NspawnHost[]];
    await first.must('systemctl', ['start', '--no-block', 'hyperedge']);
    await eventually('files that the other hosts need', 20_000, async () =>
      (
        await first.inside(
          'ls',
          SHARED.map((path) => `/${path}`),
        )
      ).code === 0
        ? true
        : undefined,
    );
    for (const host of others) for (const path of SHARED) await copy(first, host, path);
    await Promise.all(others.map((host) => host.must('systemctl', ['start', '--no-block', 'hyperedge'])));
    await allWell(60_000);
    for (const host of hosts) {
      await writable(host, `by-${host.name}`);
      // The write through each host is visible on all hosts.
      for (const each of hosts) await each.mustKubectl(['get', 'configmap', `by-${host.name}`]);
    }
    await eventually('three nodes Ready', 30_000, async () => {
      const shown = await first.mustKubectl(['get', 'nodes', '--no-headers']);
      return (shown.match(/ Ready /g) ?? []).length === COUNT ? true : undefined;
    });
  });

  test('three hosts with systemd continue when the leader loses power, and the former leader rejoins', async () => {
    const lost = await leader();
    const [one, two] = hosts.filter((host) => host !== lost) as [NspawnHost, NspawnHost];
    await lost.cutPower();
    const ms = await writable(one, 'after-power-cut');
    console.log(`written ${Math.round(ms)} ms after the power of the leader was cut, kubectl's start included`);
    await sees(two, 'after-power-cut');
    await leadsTo(one, [one, two]);
    await lost.boot();
    await lost.must('systemctl', ['start', 'hyperedge']);
    await allWell(60_000);
    await sees(lost, 'after-power-cut');
    await leadsTo(lost, hosts);
  });

  test('two hosts serve writes while the third one is disconnected, refuses writes and catches up on its return', async () => {
    const cut = await leader();
    const [one] = hosts.filter((host) => host !== cut) as [NspawnHost];
    await lan.cable(cut, false);
    console.log(`written ${Math.round(await writable(one, 'while-unplugged'))} ms after the cable was pulled`);
    const refused = await cut.kubectl(['create', 'configmap', 'alone', '--request-timeout=3s'], { timeoutMs: 10_000 });
    assert.notEqual(refused.code, 0);
    await lan.cable(cut, true);
    await allWell(60_000);
    await sees(cut, 'while-unplugged');
    // The outcome of the interrupted write is unknown to the client, but the same on all hosts.
    const answers = await Promise.all(hosts.map((host) => host.kubectl(['get', 'configmap', 'alone', '-o', 'name'])));
    assert.equal(new Set(answers.map(({ code, stdout }) => `${code} ${stdout}`)).size, 1);
  });

  test('a cluster of three hosts refuses writes without a majority and accepts them when a majority is back', async () => {
    const [first, second, third] = hosts as [NspawnHost, NspawnHost, NspawnHost];
    await second.cutPower();
    await third.cutPower();
    const args = ['create', 'configmap', 'minority', '--request-timeout=3s'];
    assert.notEqual((await first.kubectl(args, { timeoutMs: 10_000 })).code, 0);
    for (const host of [second, third]) {
      await host.boot();
      await host.must('systemctl', ['start', '--no-block', 'hyperedge']);
    }
    await allWell(60_000);
    for (const host of hosts) await writable(host, `again-${host.name}`);
    for (const host of hosts) await sees(first, `again-${host.name}`);
  });

  test('three hosts with systemd transfer the leadership of the store when the leader is stopped', async () => {
    const leaving = await leader();
    const [one] = hosts.filter((host) => host !== leaving) as [NspawnHost];
    await leaving.powerOff();
    console.log(`written ${Math.round(await writable(one, 'after-poweroff'))} ms after an orderly power-off`);
    await leaving.boot();
    await leaving.must('systemctl', ['start', 'hyperedge']);
    await allWell(60_000);
  });

  test('two hosts continue after hyperedge reset has removed the third host from the store and the cluster', async () => {
    const [one, two, leaving] = hosts as [NspawnHost, NspawnHost, NspawnHost];
    const ran = await leaving.inside('hyperedge', ['reset'], { timeoutMs: 150_000 });
    assert.equal(ran.code, 0, `${ran.stdout}${ran.stderr}`);
    assert.match(ran.stdout, new RegExp(`node ${leaving.name} is drained`));
    assert.match(ran.stdout, new RegExp(`store member ${leaving.name} is removed`));
    assert.match(ran.stdout, new RegExp(`node ${leaving.name} is deleted`));
    const members: { name: string }[] = JSON.parse(await one.must('hyperedge', ['members', '-o', 'json']));
    assert.deepEqual(members.map(({ name }) => name).sort(), [one.name, two.name].sort());
    assert.doesNotMatch(await one.mustKubectl(['get', 'nodes', '-o', 'name']), new RegExp(leaving.name));
    for (const host of [one, two]) await writable(host, `without-third-${host.name}`);
  });
});
