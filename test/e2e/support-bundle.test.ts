/**
 * `hyperedge support-bundle` of the packaged executable: secrets are planted in every place that it reads, and none may
 * be in the archive. A marker beside each secret proves that its place was read.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { Appliance, run } from './harness.ts';

const BUNDLE_MS = 300_000;

/** Log with a value that only the API server knows. */
const apiLog = 'var/log/pods/kube-system_marker-api_00000000-0000-0000-0000-000000000002/app/0.log';

interface Planted {
  readonly name: string;
  readonly value: string;
  /** Text beside the secret that must be in the bundle; undefined if its place is left out as a whole. */
  readonly marker: string | undefined;
}

const planted: Planted[] = [];

/** A secret that no pattern can recognize by its form. */
function plant(
  name: string,
  marker: string | undefined,
  value = `pLanted${planted.length}q${Math.random().toString(36).slice(2)}Z`,
): string {
  planted.push({ name, value, marker });
  return value;
}

let host: Appliance;
let outside: string;
const variable = 'PLANTED_PROCESS_VARIABLE';

before(
  async () => {
    outside = await mkdtemp(join(tmpdir(), 'he-outside-'));
    process.env[variable] = plant('environment of the host process', undefined);
    host = await Appliance.create();
    await write(
      'etc/origin/bootstrap.yaml',
      `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nproxy:\n  httpProxy: http://marker-proxy:${plant('password of a proxy', 'httpProxy')}@127.0.0.1:9\n` +
        `rigPower:\n  marker-power: [/bin/true, --password, ${plant('argument of a power switch', undefined)}]\n`,
    );
    await host.start(180_000);
  },
  { timeout: 240_000 },
);
after(async () => {
  delete process.env[variable];
  await host?.stop();
  await rm(outside, { recursive: true, force: true });
});

async function write(path: string, text: string): Promise<void> {
  const file = join(host.root, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text, { mode: 0o600 });
}

async function plantFiles(): Promise<void> {
  const now = new Date().toISOString();
  const cri = (lines: readonly string[]): string => lines.map((line) => `${now} stdout F ${line}\n`).join('');
  const node = 'etc/origin/node';
  await write(`${node}/marker-a.yaml`, `markerA: 1\nbindPassword: ${plant('password of a file', 'markerA')}\n`);
  await write(
    `${node}/marker-b.yaml`,
    `markerB: 1\nclientSecret:\n  value: ${plant('client secret of a file', 'markerB')}\n`,
  );
  await write(
    `${node}/marker-c.kubeconfig`,
    `kind: Config\nmarkerC: 1\nusers:\n- name: u\n  user:\n    token: ${plant('token of a kubeconfig', undefined)}\n    client-key-data: ${btoa(plant('key of a kubeconfig', undefined))}\n`,
  );
  await write(`${node}/broken.yaml`, `markerD: [\npassword: ${plant('password of a broken file', 'markerD')}\n`);
  await write(`${node}/marker.token`, plant('file of a token', undefined));
  await write(
    `${node}/marker.key`,
    `-----BEGIN PRIVATE KEY-----\n${plant('key of a file', undefined)}AAAA\n-----END PRIVATE KEY-----\n`,
  );
  await write('etc/sysconfig/marker-e', `MARKER_E="${plant('variable of sysconfig', 'MARKER_E')}"\n`);
  const login = plant('login of a registry', 'marker-registry');
  await write(
    'etc/containers/auth.json',
    JSON.stringify({ auths: { 'marker-registry': { auth: btoa(`user:${login}`) } } }),
  );
  await write(
    'var/lib/origin/update/marker.log',
    `marker-update token=${plant('token in the log of an update', 'marker-update')}\n`,
  );
  await write(
    'var/lib/origin/diagnostics/fatal-marker.json',
    JSON.stringify({
      marker: 'marker-crash',
      environmentVariables: { MARKER_V: plant('environment of a crash', 'marker-crash') },
    }),
  );
  await writeFile(join(outside, 'linked'), `linked: ${plant('file behind a link', undefined)}\n`);
  await symlink(join(outside, 'linked'), join(host.root, node, 'marker-link.yaml'));
  await write(
    'var/log/origin/marker-audit.log',
    `${JSON.stringify({ marker: 'marker-audit', requestObject: { kind: 'Secret', data: { x: btoa(plant('Secret in an audit line', 'marker-audit')) } } })}\n`,
  );
  const known = plant('printed value of a file', 'marker-printed');
  await write(`${node}/marker-known.password`, known);
  const ofApi = plant('printed value of a Secret', 'marker-api-only');
  await write(apiLog, cri([`marker-api-only ${ofApi} ${btoa(`user:${ofApi}`)}`]));
  const jwt = `eyJhbGciOiJub25lIn0.${btoa('{"sub":"planted-jwt"}').replaceAll('=', '')}.${plant('signature of a token', 'marker-jwt')}`;
  await write(
    'var/log/pods/kube-system_marker_00000000-0000-0000-0000-000000000001/app/0.log',
    cri([
      `marker-printed bare ${known} end`,
      `marker-base64 ${btoa(`prefix ${known} suffix`)}`,
      `marker-url https://x/?q=${encodeURIComponent(known)}`,
      `marker-hex ${Buffer.from(known).toString('hex')}`,
      `marker-pair password=${plant('pair in a log', 'marker-pair')}`,
      `marker-json {"apiKey":"${plant('JSON in a log', 'marker-json')}"}`,
      `marker-bearer Authorization: Bearer ${plant('bearer token in a log', 'marker-bearer')}`,
      `marker-jwt ${jwt}`,
      `marker-oauth sha256~${plant('OAuth token in a log', 'marker-oauth')}`,
      `marker-login http://user:${plant('URL in a log', 'marker-login')}@proxy:1/`,
      `marker-flag run --token ${plant('flag in a log', 'marker-flag')}`,
      'marker-pem -----BEGIN RSA PRIVATE KEY-----',
      plant('key in a log', 'marker-pem'),
      '-----END RSA PRIVATE KEY-----',
      `marker-bootstrap ${plant('bootstrap token in a log', 'marker-bootstrap', 'abcdef.0123456789abcdef')}`,
      `marker-hash root:$6$salt$${plant('password hash in a log', 'marker-hash')}:1:`,
      `marker-ca ${btoa(await readFile(join(host.root, 'etc/origin/master/ca.key'), 'utf8'))}`,
    ]),
  );
  planted.push({ name: 'the authority', value: await keyOf('etc/origin/master/ca.key'), marker: 'marker-ca' });
  planted.push({
    name: 'key of the administrator',
    value: await keyOf('etc/origin/master/admin.key'),
    marker: undefined,
  });
  await createSecrets(ofApi);
}

/** A line of a key that is no prefix of other keys. */
async function keyOf(path: string): Promise<string> {
  const lines = (await readFile(join(host.root, path), 'utf8')).trim().split('\n');
  return (lines.at(-2) ?? '').slice(0, 40);
}

async function createSecrets(known: string): Promise<void> {
  const create = async (objects: readonly object[]): Promise<void> => {
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const ran = await host.kubectl(['apply', '-f', '-'], { input, timeoutMs: 120_000 });
    assert.equal(ran.code, 0, ran.stderr);
  };
  const pod = (namespace: string, name: string, container: object): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { nodeName: 'no-such-node', containers: [{ name: 'c', image: 'example.invalid/x:1', ...container }] },
  });
  const system = 'kube-system';
  await create([
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'marker-s1', namespace: 'default' },
      stringData: { password: known },
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'marker-s2', namespace: system },
      data: { x: btoa(plant('data of a Secret', undefined)) },
    },
    pod('default', 'marker-p1', { env: [{ name: 'MARKER_P1', value: plant('variable of a pod', 'MARKER_P1') }] }),
    pod(system, 'marker-p2', { args: ['--marker-p2', `--token=${plant('argument of a pod', 'marker-p2')}`] }),
    pod(system, 'marker-p3', { command: ['--marker-p3', `curl -u a:${plant('command of a pod', 'marker-p3')} x`] }),
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'marker-c1',
        namespace: system,
        annotations: { 'example.com/password': plant('annotation', 'marker-c1') },
      },
      data: {
        'marker-c2': `user: x\npassword: ${plant('text of a ConfigMap', 'marker-c2')}\n`,
        'marker-c3': `-----BEGIN PRIVATE KEY-----\n${plant('key of a ConfigMap', 'marker-c3')}\n-----END PRIVATE KEY-----\n`,
        'marker-c4': `users:\n- user:\n    client-key-data: ${btoa(plant('kubeconfig of a ConfigMap', 'marker-c4'))}\n`,
      },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'marker-d1', namespace: system },
      spec: {
        replicas: 0,
        selector: { matchLabels: { a: 'b' } },
        template: {
          metadata: { labels: { a: 'b' } },
          spec: {
            containers: [
              {
                name: 'c',
                image: 'x',
                env: [{ name: 'MARKER_D1', value: plant('variable of a Deployment', 'MARKER_D1') }],
              },
            ],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'marker-e1', namespace: 'default' },
      involvedObject: { kind: 'Pod', namespace: 'default', name: 'marker-p1' },
      reason: 'Test',
      message: `marker-e2 pull https://user:${plant('message of an event', 'marker-e2')}@registry/x failed`,
      type: 'Warning',
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: '"><script>alert(1)<x' },
      rules: [],
    },
  ]);
}

interface Opened {
  readonly directory: string;
  readonly files: ReadonlyMap<string, string>;
}

async function bundle(name: string): Promise<Opened> {
  const place = await mkdtemp(join(outside, 'out-'));
  const output = join(place, `${name}.tar.gz`);
  const ran = await host.hyperedge(['support-bundle', '--root', host.root, '--since', '1h', '--output', output], {
    timeoutMs: BUNDLE_MS,
  });
  assert.equal(ran.code, 0, ran.stderr);
  for (const { name: what, value } of planted) assert.ok(!ran.stderr.includes(value), `${what} in ${ran.stderr}`);
  const { size, mode } = await stat(output);
  assert.equal(mode & 0o777, 0o600);
  assert.ok(size < 50_000_000, String(size));
  assert.deepEqual(await readdir(place), [`${name}.tar.gz`]);
  const listed = (await run('tar', ['tzf', output])).stdout.trim().split('\n');
  for (const each of listed) assert.ok(!each.startsWith('/') && !each.split('/').includes('..'), each);
  await run('tar', ['xzf', output, '-C', place]);
  const directory = join(place, listed[0]?.split('/')[0] ?? '');
  const files = new Map<string, string>();
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) {
      const path = join(entry.parentPath, entry.name);
      files.set(path.slice(directory.length + 1), await readFile(path, 'utf8'));
    }
  return { directory, files };
}

function assertNoSecrets({ files }: Opened): void {
  const found: string[] = [];
  for (const { name, value } of planted) {
    const middle = Buffer.from(value);
    const forms = [value, encodeURIComponent(value), middle.toString('hex')];
    // For each alignment of base64, the part of the encoding that depends on the secret only is searched for.
    for (const offset of [0, 1, 2]) {
      const encoded = Buffer.concat([Buffer.alloc(offset), middle])
        .toString('base64')
        .replaceAll('=', '');
      forms.push(encoded.slice([0, 2, 3][offset], -2));
    }
    for (const [path, text] of files)
      if (forms.some((form) => text.includes(form) || path.includes(form))) found.push(`${name} in ${path}`);
  }
  assert.deepEqual(found, []);
}

function assertMarkers({ files }: Opened, of: (each: Planted) => boolean = () => true): void {
  const all = [...files.values()].join('\n');
  for (const { name, marker } of planted.filter(of))
    if (marker !== undefined) assert.ok(all.includes(marker), `${name}: ${marker} is not in the bundle`);
}

async function assertIndex({ directory, files }: Opened): Promise<string> {
  const page = files.get('index.html') ?? '';
  assert.match(page, /^<!DOCTYPE html>/);
  assert.ok(!/<script|javascript:|\son\w+=/i.test(page), 'a script in the index');
  const links = [...page.matchAll(/href="([^"]*)"/g)].map(([, link = '']) => link);
  assert.ok(links.length > 40, String(links.length));
  for (const link of links)
    if (link.startsWith('#')) assert.ok(page.includes(`id="${link.slice(1)}"`), link);
    else assert.ok((await stat(join(directory, decodeURIComponent(link)))).isFile(), link);
  for (const path of files.keys())
    if (path !== 'index.html')
      assert.ok(links.includes(path.split('/').map(encodeURIComponent).join('/')), `${path} has no link`);
  return page;
}

test('a bundle of a running host has all sections, contains no planted secret, and has a page without scripts', async () => {
  await plantFiles();
  assert.ok(planted.length >= 30, String(planted.length));
  const opened = await bundle('up');
  assertNoSecrets(opened);
  assertMarkers(opened);
  await assertIndex(opened);
  const { files } = opened;
  for (const component of ['host', 'api', 'controllers', 'etcd'])
    assert.match(files.get(`processes/${component}.yaml`) ?? '', /used_heap_size: \d+[\s\S]*delayMs:/, component);
  assert.match(files.get('pods/pods.yaml') ?? '', /name: master-api/);
  assert.match(files.get('metrics/api.txt') ?? '', /apiserver_request/);
  assert.match(files.get('doctor.yaml') ?? '', /checks:/);
  assert.match(files.get('store/members.yaml') ?? '', /state:/);
  assert.match(files.get('network/nft-ruleset.txt') ?? '', /table /);
  assert.match(files.get('history/revisions.yaml') ?? '', /revision:/);
  assert.match(files.get('cgroups.txt') ?? '', /memory/);
});

test('a bundle of a host whose API server does not answer has the kubelet’s pods, and no secret', async () => {
  const { components } = JSON.parse((await host.hyperedge(['status', '--root', host.root, '-o', 'json'])).stdout);
  const api = components.find((each: { name: string }) => each.name === 'api');
  await rm(join(host.root, apiLog));
  process.kill(api.pid, 'SIGSTOP');
  let opened: Opened;
  try {
    opened = await bundle('down');
  } finally {
    try {
      process.kill(api.pid, 'SIGCONT');
    } catch {
      // The kubelet has restarted the API server, so the process does not exist any more.
    }
  }
  assertNoSecrets(opened);
  assertMarkers(
    opened,
    ({ marker }) => marker === 'MARKER_E' || marker === 'marker-pair' || marker === 'marker-printed',
  );
  const page = await assertIndex(opened);
  assert.match(page, /the API server does not answer/);
  assert.match(opened.files.get('pods/pods.yaml') ?? '', /name: master-api/);
  assert.match(opened.files.get('problems/cluster.txt') ?? '', /the API server does not answer/);
});

test('a full disk causes a clear error and leaves no partial bundle', async () => {
  const place = join(outside, 'full');
  await mkdir(place);
  assert.equal((await host.inside('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', place])).code, 0);
  try {
    const output = join(place, 'x.tar.gz');
    const ran = await host.hyperedge(['support-bundle', '--root', host.root, '--output', output], {
      timeoutMs: BUNDLE_MS,
    });
    assert.equal(ran.code, 1);
    assert.match(ran.stderr, /no space is left for the bundle; name a file on another disk with --output/);
    assert.deepEqual(await readdir(place), []);
  } finally {
    await host.inside('umount', [place]);
  }
});
