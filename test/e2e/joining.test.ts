/** Hosts join a cluster by token: a node, then masters with store members. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, readlink, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Lease } from '../../src/api/generated/coordination/v1.ts';
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

const isSubset = (names: readonly string[], all: readonly string[]): boolean =>
  names.every((name) => all.includes(name));

async function untilReady(host: Appliance, names: readonly string[], timeoutMs = 60_000): Promise<void> {
  try {
    const ready = await eventually(`nodes ${names.join()} Ready`, timeoutMs, async () =>
      host.exitCode !== undefined || isSubset(names, await readyNodes()) ? true : undefined,
    );
    assert.ok(ready);
    assert.equal(host.exitCode, undefined);
  } catch (error) {
    throw new Error(`${String(error)}\n${host.output.slice(-4000)}`);
  }
}

test('joins a node by token with the files and steps of OKD, without the private key of a CA', {
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
  // The API server verifies the kubelet's serving certificate.
  const logs = await eventually('logs through the kubelet of h2', 20_000, async () => {
    const got = await first.kubectl(['get', '--raw', '/api/v1/nodes/h2/proxy/healthz']);
    return got.code === 0 ? got.stdout : undefined;
  });
  assert.equal(logs, 'ok');
  assert.match(await readFile(join(node, 'joined.yaml'), 'utf8'), /clusterCIDR: 10\.128\.0\.0\/14/);
});

test('joins two masters by token, whose stores become members automatically', { timeout: 300_000 }, async () => {
  const created = await token('--roles', 'master,etcd,node');
  for (const [index, name] of ['h3', 'h4'].entries()) {
    const host = await lan.add({ name, address: `10.88.0.${index + 3}`, config: joinOf(created) });
    host.launch();
    await untilReady(host, ['h1', 'h2', 'h3', 'h4'].slice(0, index + 3), 90_000);
    // The second member waits as a learner; when the third one joins, both become voters.
    const expected = index === 0 ? { h3: 'learner' } : { h3: 'voter|leader', h4: 'voter|leader' };
    await eventually(`members of the store with ${name}`, 60_000, async () => {
      const { stdout } = await first.hyperedge(['members', '--root', first.root]);
      const isThere = ([member, role]: [string, string]): boolean =>
        new RegExp(`^${member} +\\w+ +(?:${role}) +ok `, 'm').test(stdout);
      return Object.entries(expected).every(isThere) ? true : undefined;
    });
    const own = await host.kubectl(['get', 'nodes', '--no-headers']);
    assert.equal(own.code, 0, own.stderr);
  }
  const { stdout, stderr } = await first.hyperedge(['members', '--root', first.root]);
  assert.equal(stdout.trim().split('\n').length, 4, `${stdout}${stderr}`);
});

test('renews the leases of all nodes while the API server of one host is stopped', {
  timeout: 180_000,
}, async () => {
  const names = ['h1', 'h2', 'h3', 'h4'];
  const manifest = join(first.root, 'etc/origin/node/pods/apiserver.yaml');
  const kept = join(first.root, 'apiserver.yaml');
  await rename(manifest, kept);
  try {
    await eventually('the API server of h1 has ended', 30_000, async () =>
      (await first.kubectl(['get', '--raw', '/readyz', '--request-timeout=2s'])).code === 0 ? undefined : true,
    );
    const ended = Date.now();
    // kubectl connects like a client on h1, through the load balancer of that host.
    const args = ['get', 'leases', '-n', 'kube-node-lease', '-o', 'json', '--server', 'https://127.0.0.1:7443'];
    await eventually('four leases renewed since', 60_000, async () => {
      const { items } = JSON.parse((await first.kubectl(args)).stdout) as { items: Lease[] };
      const renewed = items.filter(({ spec }) => Date.parse(spec?.renewTime ?? '') > ended + 1_000);
      return names.every((name) => renewed.some(({ metadata }) => metadata?.name === name)) ? true : undefined;
    });
    const shown = await first.kubectl(['get', 'nodes', '--no-headers', '--server', 'https://127.0.0.1:7443']);
    for (const name of names) assert.match(shown.stdout, new RegExp(`^${name} +Ready `, 'm'));
    assert.ok(Date.now() - ended < 40_000, 'before any node would be NotReady');
  } finally {
    await rename(kept, manifest);
  }
  await eventually('the API server of h1 is ready again', 60_000, async () =>
    (await first.kubectl(['get', '--raw', '/readyz', '--request-timeout=2s'])).code === 0 ? true : undefined,
  );
});

/** Runs the host until it exits and returns its last output line. */
async function refusal(host: Appliance): Promise<string> {
  host.launch();
  const code = await eventually('end of the host process', 60_000, () => host.exitCode);
  assert.equal(code, 1, host.output);
  return host.output.trim().split('\n').at(-1) ?? '';
}

test('reports each invalid input in one line, and joins at the next attempt', { timeout: 300_000 }, async () => {
  const created = await token();
  const masters = await token('--roles', 'master,etcd,node');
  const host = await lan.add({ name: 'h5', address: '10.88.0.5' });
  const { server, caHash, token: text } = created;
  const wrong = (character: string): string => (character === 'a' ? 'b' : 'a');
  const cases: readonly [string, RegExp][] = [
    [joinOf({ ...created, token: `zzzzzz.${text.slice(7)}` }), /join\.token: the cluster has no token zzzzzz; /],
    [
      joinOf({ ...created, token: text.slice(0, -1) + wrong(text.at(-1) ?? '') }),
      /join\.token: the secret of token \w{6} is wrong, /,
    ],
    [
      joinOf({ ...created, caHash: caHash.slice(0, -1) + wrong(caHash.at(-1) ?? '') }),
      /join\.caHash: the CA of https:/,
    ],
    [`${joinOf(created)}roles: [master, etcd, node]\n`, /roles: the token is for node, not for master,etcd; /],
    [
      `${joinOf(created)}network: {serviceCIDR: 10.1.0.0/16}\n`,
      /network\.serviceCIDR: is 10\.1\.0\.0\/16, the cluster has 172/,
    ],
    [
      joinOf({ ...masters, token: masters.token.slice(0, -1) + wrong(masters.token.at(-1) ?? '') }),
      /join\.token: does not decrypt the keys/,
    ],
    [
      joinOf({ ...created, server: server.replace('10.88.0.1', '10.88.0.77') }),
      /join\.server: https:\/\/10\.88\.0\.77:8443 does not answer: /,
    ],
  ];
  for (const [config, expected] of cases) {
    await lan.configure(host, 'h5', config);
    assert.match(await refusal(host), expected);
    assert.equal(existsSync(join(host.root, 'etc/origin/node/joined.yaml')), false, config);
  }
  await lan.configure(host, 'h2', joinOf(created));
  assert.match(await refusal(host), /node\.name: node h2 exists and is Ready on another machine /);
  const revoked = await first.hyperedge(['token', 'revoke', text, '--root', first.root]);
  assert.equal(revoked.stdout, `token ${text.slice(0, 6)} revoked\n`, revoked.stderr);
  await lan.configure(host, 'h5', joinOf(created));
  assert.match(await refusal(host), /join\.token: the cluster has no token /);
  await lan.configure(host, 'h5', joinOf(await token()));
  host.launch();
  await untilReady(host, ['h5']);
});

test('reports a used port before the host sends a request to the cluster', { timeout: 120_000 }, async () => {
  const host = await lan.add({ name: 'h6', address: '10.88.0.6', config: joinOf(await token()) });
  const listener = host.spawnInside(process.execPath, ['-e', "require('net').createServer().listen(10250)"]);
  try {
    await eventually('listener', 10_000, async () =>
      (await host.inside('ss', ['-Hltn'])).stdout.includes(':10250') ? true : undefined,
    );
    assert.match(await refusal(host), /port 10250 for the kubelet is in use; free it or set ports\.kubelet/);
  } finally {
    listener.kill('SIGKILL');
  }
  const requests = await first.must(['get', 'csr', '-o', 'jsonpath={.items[*].spec.username}']);
  assert.doesNotMatch(requests, /h6/);
});

test('joins as in OKD, with a bootstrap.kubeconfig and manual approval', { timeout: 180_000 }, async () => {
  const host = await lan.add({ name: 'h7', address: '10.88.0.7' });
  const secret = await first.must(['create', 'token', 'node-bootstrapper', '-n', 'openshift-infra']);
  const ca = (await readFile(join(first.root, 'etc/origin/master/ca.crt'))).toString('base64');
  const file = join(host.root, 'etc/origin/node/bootstrap.kubeconfig');
  await mkdir(join(host.root, 'etc/origin/node'), { recursive: true });
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://10.88.0.1:8443', 'certificate-authority-data': ca } }],
    users: [{ name: 'u', user: { token: secret.trim() } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  };
  await writeFile(file, JSON.stringify(kubeconfig), { mode: 0o600 });
  host.launch();
  const [, name = ''] = await eventually(
    'notice',
    30_000,
    () => /kubectl certificate approve (node-csr-\w+)/.exec(host.output) ?? undefined,
  );
  await host.halt('SIGKILL');
  host.launch();
  await first.must(['certificate', 'approve', name]);
  await untilReady(host, ['h7']);
  const requests = await first.must(['get', 'csr', '-o', 'jsonpath={range .items[*]}{.spec.username} {end}']);
  const own = requests.split(' ').filter((user) => user.includes('node-bootstrapper'));
  assert.equal(own.length, 1, 'the restarted host repeated the same request');
});
