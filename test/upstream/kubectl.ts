/**
 * Runs upstream's `test-cmd` suite (Kubernetes 1.20, `test/cmd`): all kubectl commands against the packaged executable,
 * which runs as `etcd` and `kube-apiserver` with the flags of upstream's script, and upstream's controllers. Not part
 * of `npm test`: it takes half an hour.
 *
 *   npm run test:upstream:kubectl -- --programs DIR [--sources DIR] [--only run_pod_tests]... [--reports DIR]
 *       [--apiserver FILE] [--etcd FILE] [--unchanged]
 *
 * `--programs` contains kubectl, kubectl-convert and kube-controller-manager, built from the same sources (`go build
 * k8s.io/kubernetes/cmd/kubectl`). With Go 1.18 or later, replace the vendored github.com/modern-go/reflect2 by 1.0.2;
 * otherwise they crash on maps. `--apiserver` and `--etcd`: other programs, to find failures that do not concern this
 * project. `--unchanged`: do not adapt the manifests. The exit code is 1 if something fails that is not in `KNOWN`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, open, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import { freePort } from '../support/ports.ts';
import { upstreamSource } from './sources/sources.ts';

const EXECUTABLE = join(import.meta.dirname, '..', '..', 'dist', `hyperedge-linux-${process.arch}`);
const DRIVER = join(import.meta.dirname, 'kubectl-driver.sh');
/** Directories that the scripts write to; the rest of the tree is linked. */
const COPIED = ['test', 'hack', 'third_party', 'cluster', 'api'];

/** Expected failures by place, with the reason. */
const KNOWN: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({
    'singularName is empty in discovery of 1.20, and filled in by every server since 1.27': ['discovery.sh:58'],
    'who creates a node owns nothing of its status since fields are reset for owners, and updates of what nobody owns anything of are not recorded':
      ['node-management.sh:92'],
    'the server prefers autoscaling/v2, as every one since 1.23, and the test reads v1': [
      ...['apps.sh:286', 'apps.sh:702', 'apps.sh:706', 'core.sh:1391', 'core.sh:1395', 'get.sh:111'],
      ...[
        'generic-resources.sh:344',
        'generic-resources.sh:345',
        'save-config.sh:92',
        'save-config.sh:94',
        'save-config.sh:97',
      ],
    ],
    'kubectl 1.20 makes jobs of cron jobs of batch/v1beta1 only; the server prefers batch/v1, as every one since 1.21':
      [
        ...['batch.sh:50', 'batch.sh:52', 'batch.sh:59', 'batch.sh:60', 'batch.sh:63', 'batch.sh:65', 'batch.sh:66'],
        ...['batch.sh:67', 'batch.sh:69', 'create.sh:119', 'create.sh:121', 'create.sh:122', 'create.sh:125'],
        ...['template-output.sh:125', 'template-output.sh:126'],
      ],
    'reads a manifest from the internet': ['177', '180', '181', '184'].map((line) => `generic-resources.sh:${line}`),
    'programs of Go 1.19 and later start nothing that they find below a relative PATH': ['48', '49', '52', '53'].map(
      (line) => `plugins.sh:${line}`,
    ),
  }).flatMap(([reason, places]) => places.map((place) => [place, reason])),
);

const { values: flags } = parseArgs({
  options: {
    programs: { type: 'string' },
    sources: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
    reports: { type: 'string', default: '/tmp/hyperedge-test-cmd' },
    apiserver: { type: 'string' },
    etcd: { type: 'string' },
    unchanged: { type: 'boolean', default: false },
  },
});

interface Document {
  apiVersion?: string;
  spec?: Record<string, unknown>;
  [field: string]: unknown;
}

const BETA_DEFINITION = 'apiextensions.k8s.io/v1beta1';

/** Converts a v1beta1 definition, which is not served since 1.22, to an equivalent one in v1. */
function asV1(definition: Document): Document {
  const { version, validation, ...spec } = definition.spec ?? {};
  const { openAPIV3Schema = {} } = (validation ?? {}) as { openAPIV3Schema?: object };
  const schema = {
    openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, ...openAPIV3Schema },
  };
  const versions = [{ name: version, served: true, storage: true, schema }];
  return { ...definition, apiVersion: 'apiextensions.k8s.io/v1', spec: { ...spec, versions } };
}

/** Adds the signer to a v1beta1 signing request, for which it was inferred. */
function signedBy(request: Document): Document {
  const spec = {
    ...request.spec,
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['digital signature', 'key encipherment', 'client auth'],
  };
  return { ...request, apiVersion: 'certificates.k8s.io/v1', spec };
}

async function modernize(tree: string): Promise<void> {
  for (const name of ['apply.sh', 'crd.sh']) {
    const file = join(tree, 'test/cmd', name);
    const text = await readFile(file, 'utf8');
    const changed = text.replaceAll(
      /(<< *__EOF__\n)(\{[\s\S]*?\n\})(?=\n__EOF__)/g,
      (all, head: string, body: string) =>
        body.includes(BETA_DEFINITION) ? `${head}${indented(asV1(JSON.parse(body) as Document), body)}` : all,
    );
    await writeFile(file, changed);
  }
  const manifests: [string, (document: Document) => Document][] = [
    ['hack/testdata/multi-resource-4.yaml', (each) => (each.apiVersion === BETA_DEFINITION ? asV1(each) : each)],
    ['hack/testdata/csr.yml', signedBy],
  ];
  for (const [name, change] of manifests) {
    const file = join(tree, name);
    const documents = parseAllDocuments(await readFile(file, 'utf8')).map((each) => each.toJS() as Document);
    await writeFile(file, documents.map((each) => stringify(change(each))).join('---\n'));
  }
}

/** Keeps the number of lines, because expected failures are identified by line. */
function indented(document: Document, before: string): string {
  return `${JSON.stringify(document)}${'\n'.repeat(before.split('\n').length - 1)}`;
}

async function copyTree(sources: string, tree: string): Promise<void> {
  await mkdir(tree, { recursive: true });
  for (const entry of await readdir(sources)) {
    if (COPIED.includes(entry))
      await cp(join(sources, entry), join(tree, entry), { recursive: true, verbatimSymlinks: true });
    else await symlink(join(sources, entry), join(tree, entry));
  }
  if (!flags.unchanged) await modernize(tree);
}

const started: ChildProcess[] = [];

/** Starts a program under the name `name`, because the executable selects its component by name. */
async function start(name: string, file: string, args: readonly string[]): Promise<void> {
  const link = join(flags.reports, 'bin', name);
  await symlink(resolve(file), link);
  const log = await open(join(flags.reports, `${name}.log`), 'w');
  const child = spawn(link, args, { stdio: ['ignore', log.fd, log.fd], cwd: join(flags.reports, 'tree') });
  child.once('error', () => {});
  child.once('close', () => log.close());
  started.push(child);
}

async function stopAll(): Promise<void> {
  for (const child of started.reverse()) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue;
    const gone = new Promise((done) => child.once('close', done));
    child.kill('SIGTERM');
    await gone;
  }
}

/** Waits until the server reports that it is healthy. */
async function healthy(name: string, url: string): Promise<void> {
  const headers = { authorization: 'Bearer admin-token' };
  const code = (): Promise<number> =>
    url.startsWith('http:')
      ? fetch(url).then(
          (answer) => answer.status,
          () => 0,
        )
      : new Promise((answered) => {
          request(url, { rejectUnauthorized: false, headers }, (answer) => {
            answer.resume();
            answered(answer.statusCode ?? 0);
          })
            .once('error', () => answered(0))
            .end();
        });
  for (let attempt = 0; attempt < 300; attempt++) {
    if ((await code()) === 200) return;
    await new Promise((done) => setTimeout(done, 200));
  }
  throw new Error(`${name} does not answer at ${url}; see ${join(flags.reports, `${name}.log`)}`);
}

interface Servers {
  readonly etcd: number;
  readonly api: number;
  readonly controllers: number;
}

async function startServers(programs: string): Promise<Servers> {
  const { reports } = flags;
  const [etcd, peer, api, controllers] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const url = `http://127.0.0.1:${etcd}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  await start('etcd', flags.etcd ?? EXECUTABLE, [
    `--advertise-client-urls=${url}`,
    `--listen-client-urls=${url}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    `--data-dir=${join(reports, 'data')}`,
  ]);
  await healthy('etcd', `${url}/health`);
  const key = join(reports, 'service-accounts.key');
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await writeFile(key, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
  await start('kube-apiserver', flags.apiserver ?? EXECUTABLE, [
    '--bind-address=127.0.0.1',
    '--authorization-mode=RBAC,AlwaysAllow',
    `--secure-port=${api}`,
    '--feature-gates=ServerSideApply=true',
    '--enable-admission-plugins=LimitRanger,ResourceQuota',
    '--disable-admission-plugins=ServiceAccount,PersistentVolumeLabel,DefaultStorageClass,DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,StorageObjectInUseProtection',
    `--etcd-servers=${url}`,
    '--runtime-config=api/v1',
    `--service-account-key-file=${key}`,
    '--service-account-lookup=true',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-signing-key-file=${key}`,
    '--storage-media-type=',
    `--cert-dir=${join(reports, 'tmp')}`,
    '--service-cluster-ip-range=10.0.0.0/24',
    '--client-ca-file=hack/testdata/ca.crt',
    '--token-auth-file=hack/testdata/auth-tokens.csv',
  ]);
  await healthy('kube-apiserver', `https://127.0.0.1:${api}/healthz`);
  const kubeconfig = join(reports, 'controllers.kubeconfig');
  const cluster = { server: `https://127.0.0.1:${api}`, 'insecure-skip-tls-verify': true };
  const access = {
    kind: 'Config',
    users: [{ name: 'controllers', user: { token: 'admin-token' } }],
    clusters: [{ name: 'local', cluster }],
    contexts: [{ name: 'local', context: { cluster: 'local', user: 'controllers' } }],
    'current-context': 'local',
  };
  await writeFile(kubeconfig, stringify(access));
  await start('kube-controller-manager', join(programs, 'kube-controller-manager'), [
    `--kubeconfig=${kubeconfig}`,
    `--secure-port=${controllers}`,
    '--port=0',
  ]);
  await healthy('kube-controller-manager', `https://127.0.0.1:${controllers}/healthz`);
  return { etcd, api, controllers };
}

/** Creates a Node without a kubelet. */
function createNode(api: number): Promise<void> {
  const body = JSON.stringify({ metadata: { name: '127.0.0.1' }, status: { capacity: { memory: '1Gi' } } });
  const headers = { authorization: 'Bearer admin-token', 'content-type': 'application/json' };
  return new Promise((done, fail) => {
    request(
      `https://127.0.0.1:${api}/api/v1/nodes`,
      { method: 'POST', rejectUnauthorized: false, headers },
      (answer) => {
        answer.resume();
        if (answer.statusCode === 201) done();
        else fail(new Error(`the node is refused: ${answer.statusCode}`));
      },
    )
      .once('error', fail)
      .end(body);
  });
}

/** Runs the functions and prints one line for each. Returns the number of unexpected failures. */
async function drive({ etcd, api, controllers }: Servers, programs: string): Promise<number> {
  const env = {
    PATH: process.env['PATH'],
    ETCD_PORT: String(etcd),
    SECURE_API_PORT: String(api),
    SECURE_CTLRMGR_PORT: String(controllers),
    PROGRAMS: programs,
    REPORTS: flags.reports,
    ONLY: flags.only.join(' '),
  };
  const child = spawn('bash', [DRIVER], {
    cwd: join(flags.reports, 'tree'),
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  started.push(child);
  let failures = 0;
  let functions = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const [name = '', status, seconds = '', ...failed] = line.trim().split(' ');
    const places = status === '0' ? failed : [...failed, `ended with ${status}`];
    const wrong = places.filter((place) => KNOWN[place] === undefined);
    const known = places.filter((place) => KNOWN[place] !== undefined);
    functions += 1;
    failures += wrong.length;
    console.log(
      `${wrong.length === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)${wrong.map((place) => `\n       ${place}`).join('')}`,
    );
    for (const place of known) console.log(`       ${place} differs: ${KNOWN[place]}`);
  }
  console.log(`${functions} functions, ${failures} places that fail; see ${flags.reports}`);
  return functions === 0 ? 1 : failures;
}

async function main(): Promise<number> {
  if (flags.programs === undefined || !existsSync(join(flags.programs, 'kube-controller-manager'))) {
    console.error('--programs DIR must name a directory with kubectl and kube-controller-manager of Kubernetes 1.20');
    return 2;
  }
  if (flags.apiserver === undefined && !existsSync(EXECUTABLE)) {
    console.error(`${EXECUTABLE} is missing; run npm run build`);
    return 2;
  }
  const programs = resolve(flags.programs);
  const sources = flags.sources === undefined ? (await upstreamSource('kubernetes')).directory : resolve(flags.sources);
  await rm(flags.reports, { recursive: true, force: true });
  for (const directory of ['tmp', 'bin']) await mkdir(join(flags.reports, directory), { recursive: true });
  try {
    await copyTree(sources, join(flags.reports, 'tree'));
    const servers = await startServers(programs);
    await createNode(servers.api);
    return (await drive(servers, programs)) === 0 ? 0 : 1;
  } finally {
    await stopAll();
  }
}

process.exitCode = await main();
