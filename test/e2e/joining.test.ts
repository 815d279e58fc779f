/** Hosts join a cluster by token: a node, then masters with members of the store. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Appliance, eventually } from './harness.ts';
import { Lan } from './lan.ts';

interface Created {
  readonly token: string;
  readonly server: string;
  readonly caHash: string;
  readonly command: string;
}

let lan: Lan;
let first: Appliance;
before(async () => {
  lan = await Lan.create();
  first = await lan.add({ name: 'h1', address: '10.88.0.1' });
  await first.start();
});
after(() => lan?.stop());

async function token(...flags: readonly string[]): Promise<Created> {
  const { code, stdout, stderr } = await first.hyperedge([
    'token',
    'create',
    '-o',
    'json',
    '--root',
    first.root,
    ...flags,
  ]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

const joinOf = ({ server, token: text, caHash }: Created): string =>
  `join: {server: '${server}', token: ${text}, caHash: '${caHash}'}\n`;

const readyNodes = async (): Promise<string[]> => {
  const { stdout } = await first.kubectl(['get', 'nodes', '--no-headers']);
  return stdout.split('\n').flatMap((line) => (/^(\S+) +Ready /.exec(line)?.[1] ?? []) as string[] | string);
};

async function untilReady(host: Appliance, names: readonly string[], timeoutMs = 60_000): Promise<void> {
  try {
    const ready = await eventually(`nodes ${names.join()} Ready`, timeoutMs, async () =>
      host.exitCode !== undefined || (await readyNodes()).join() === names.join() ? true : undefined,
    );
    assert.ok(ready);
    assert.equal(host.exitCode, undefined);
  } catch (error) {
    throw new Error(`${String(error)}\n${host.output.slice(-4000)}`);
  }
}

test('a node joins by token, with the files and steps of OKD, and holds no key of the cluster', {
  timeout: 180_000,
}, async () => {
  const created = await token();
  assert.match(
    created.command,
    /^hyperedge install --join https:\/\/10\.88\.0\.1:8443 --token \S+ --ca-hash sha256:\w{64}$/,
  );
  const host = await lan.add({ name: 'h2', address: '10.88.0.2', config: joinOf(created) });
  host.launch();
  await untilReady(host, ['h1', 'h2']);
  const node = join(host.root, 'etc/origin/node');
  for (const role of ['client', 'server']) {
    const link = join(node, 'certificates', `kubelet-${role}-current.pem`);
    const target = await eventually(`${role} certificate`, 20_000, () => readlink(link).catch(() => undefined));
    assert.match(target, new RegExp(`^kubelet-${role}-\\d{4}-\\d\\d-\\d\\d-\\d\\d-\\d\\d-\\d\\d\\.pem$`));
    assert.equal((await stat(link)).mode & 0o777, 0o600);
  }
  assert.ok(existsSync(join(node, 'bootstrap.kubeconfig')));
  assert.ok(existsSync(join(node, 'node.kubeconfig')));
  const files = await readdir(join(host.root, 'etc'), { recursive: true });
  assert.deepEqual(
    files.filter((file) => /ca\.key$|private\.key$/.test(file)),
    [],
  );
  // The serving certificate is the cluster's: the API server verifies it.
  const logs = await eventually('logs through the kubelet of h2', 20_000, async () => {
    const got = await first.kubectl(['get', '--raw', '/api/v1/nodes/h2/proxy/healthz']);
    return got.code === 0 ? got.stdout : undefined;
  });
  assert.equal(logs, 'ok');
  assert.match(await readFile(join(node, 'joined.yaml'), 'utf8'), /clusterCIDR: 10\.128\.0\.0\/14/);
});

test('two masters join by token: their stores become members by themselves', { timeout: 300_000 }, async () => {
  const created = await token('--roles', 'master,etcd,node');
  for (const [index, name] of ['h3', 'h4'].entries()) {
    const host = await lan.add({ name, address: `10.88.0.${index + 3}`, config: joinOf(created) });
    host.launch();
    await untilReady(host, ['h1', 'h2', 'h3', 'h4'].slice(0, index + 3), 90_000);
    await eventually(`${name} is a voting member`, 60_000, async () => {
      const { stdout } = await first.hyperedge(['members', '--root', first.root]);
      return new RegExp(`^${name} +\\w+ +(?:voter|leader) +ok `, 'm').test(stdout) ? true : undefined;
    });
    const own = await host.kubectl(['get', 'nodes', '--no-headers']);
    assert.equal(own.code, 0, own.stderr);
  }
  const { stdout, stderr } = await first.hyperedge(['members', '--root', first.root]);
  assert.equal(stdout.trim().split('\n').length, 4, `${stdout}${stderr}`);
});
