/**
 * `kube-apiserver` as a process: started with `etcd` in the way of controller-runtime's envtest, and used with kubectl.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { apiConfigOf } from '../../../src/host/apiserver/config.ts';
import { prepareEnvtest } from '../../../src/host/apiserver/envtest.ts';
import { planApi } from '../../../src/host/apiserver/run.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/index.ts';
import { createKubeconfig } from '../../../src/pki/kubeconfig.ts';
import { kubectls } from '../../support/kubectls.ts';
import { MAIN } from '../../support/main-program.ts';
import { freePort } from '../../support/ports.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'api-process-'));
});
after(() => rm(directory, { recursive: true }));

interface Started {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly exited: Promise<number | null>;
}

const running = new Set<Started>();
afterEach(async () => {
  for (const one of running) one.child.kill('SIGKILL');
  await Promise.all([...running].map((one) => one.exited));
  running.clear();
});

function launch(argv0: string, args: readonly string[]): Started {
  const child = spawn(process.execPath, [MAIN, ...args], {
    argv0,
    cwd: directory,
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const more = (chunk: Buffer): void => {
    output += chunk.toString();
  };
  child.stdout.on('data', more);
  child.stderr.on('data', more);
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  const one = { child, output: () => output, exited };
  running.add(one);
  return one;
}

/** envtest's health check: polls without credentials until the status is 200. */
async function answers(url: string, ca: string, started: Started): Promise<void> {
  for (let attempt = 0; attempt < 400; attempt++) {
    const code = await new Promise<number>((resolve) => {
      get(url, { ca, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      }).on('error', () => resolve(0));
    });
    if (code === 200) return;
    if (started.child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`${url} does not answer 200:\n${started.output()}`);
}

function kubectl(file: string, args: readonly string[], input = ''): Promise<{ code: number; text: string }> {
  return new Promise((resolve) => {
    const child = execFile(file, args, { timeout: 30_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), text: stdout + stderr });
    });
    child.stdin?.end(input);
  });
}

/** Writes the files that envtest creates before it starts any process. */
async function tinyCa(certDir: string) {
  const day = lifetimeFrom(Date.now(), 1);
  await mkdir(certDir, { recursive: true });
  const ca = await createAuthority('kubernetes-envtest', day);
  const serving = await issue(ca, {
    subject: { commonName: 'apiserver' },
    usages: ['server'],
    names: { dns: ['localhost'], ips: ['127.0.0.1'] },
    validity: day,
  });
  const admin = await issue(ca, {
    subject: { commonName: 'admin', organizations: ['system:masters'] },
    usages: ['client'],
    validity: day,
  });
  const signer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const files: [string, string][] = [
    ['apiserver.crt', serving.certPem],
    ['apiserver.key', serving.keyPem],
    ['client-cert-auth-ca.crt', ca.certPem],
    ['sa-signer.key', signer.privateKey.export({ type: 'sec1', format: 'pem' }).toString()],
    ['sa-signer.crt', signer.publicKey.export({ type: 'spki', format: 'pem' }).toString()],
  ];
  for (const [name, text] of files) await writeFile(join(certDir, name), text, { mode: 0o640 });
  return { ca, admin };
}

async function startBoth(certDir: string, more: readonly string[] = []) {
  const { ca, admin } = await tinyCa(certDir);
  const etcdUrl = `http://127.0.0.1:${await freePort()}`;
  const socket = join(certDir, 'etcd.sock');
  const port = await freePort();
  const beganMs = performance.now();
  launch('etcd', [
    '--listen-peer-urls=http://localhost:0',
    `--listen-client-urls=${etcdUrl},unix://${socket}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--data-dir=${join(certDir, 'etcd')}`,
    '--unsafe-no-fsync=true',
  ]);
  const api = launch('kube-apiserver', [
    '--advertise-address=127.0.0.1',
    '--allow-privileged=true',
    '--authorization-mode=RBAC',
    '--bind-address=127.0.0.1',
    `--cert-dir=${certDir}`,
    `--client-ca-file=${join(certDir, 'client-cert-auth-ca.crt')}`,
    '--disable-admission-plugins=ServiceAccount',
    `--etcd-servers=${etcdUrl}`,
    `--secure-port=${port}`,
    `--service-account-issuer=https://127.0.0.1:${port}/`,
    `--service-account-key-file=${join(certDir, 'sa-signer.crt')}`,
    `--service-account-signing-key-file=${join(certDir, 'sa-signer.key')}`,
    '--service-cluster-ip-range=10.0.0.0/24',
    ...more,
  ]);
  const server = `https://127.0.0.1:${port}`;
  await answers(`${server}/readyz`, ca.certPem, api);
  const readyMs = performance.now() - beganMs;
  const kubeconfig = join(certDir, 'kubeconfig');
  await writeFile(
    kubeconfig,
    createKubeconfig({
      server,
      caPem: ca.certPem,
      user: 'admin',
      client: { certPem: admin.certPem, keyPem: admin.keyPem },
    }),
  );
  return { api, kubeconfig, server, ca, port, readyMs, socket };
}

const SAMPLE = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Pod
metadata: {name: lone, namespace: default}
spec: {containers: [{name: c, image: busybox, securityContext: {privileged: true}}]}
`;

describe('kube-apiserver by its own flags', () => {
  for (const { label, path: file } of kubectls()) {
    it(`starts with the arguments of envtest and serves kubectl (${label})`, async (t) => {
      const { kubeconfig, readyMs, api } = await startBoth(join(directory, `env-${label}`));
      t.diagnostic(`etcd and kube-apiserver ready after ${Math.round(readyMs)} ms`);
      const run = (...args: string[]) => kubectl(file, ['--kubeconfig', kubeconfig, ...args]);
      const applied = await kubectl(file, ['--kubeconfig', kubeconfig, 'apply', '--validate=false', '-f', '-'], SAMPLE);
      // Without the admission plug-in, a pod needs no service account.
      assert.match(applied.text, /pod\/lone created/);
      const pods = await run('get', 'pods', '-o', 'name');
      assert.equal(pods.text.trim(), 'pod/lone');
      assert.equal((await run('wait', '--for=condition=Established', 'crd/widgets.example.com')).code, 0);
      const services = await run('get', 'service', 'kubernetes', '-o', 'jsonpath={.spec.clusterIP}');
      assert.equal(services.text, '10.0.0.1');
      api.child.kill('SIGTERM');
      assert.equal(await api.exited, 0);
    });
  }

  it('serves health to anonymous clients with 200 and rejects other requests with 403', async () => {
    const { server, ca } = await startBoth(join(directory, 'anonymous'));
    const code = (path: string): Promise<number> =>
      new Promise((resolve, reject) => {
        get(`${server}${path}`, { ca: ca.certPem, agent: false }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        }).on('error', reject);
      });
    assert.deepEqual([await code('/healthz'), await code('/version'), await code('/api/v1/secrets')], [200, 200, 403]);
  });

  it('generates a serving certificate if none is given', async () => {
    const { socket } = await startBoth(join(directory, 'first'));
    const certDir = join(directory, 'made');
    const port = await freePort();
    const pki = join(directory, 'first');
    const tokens = join(directory, 'tokens.csv');
    await writeFile(tokens, 'admin-token,admin,,"system:masters"\n', { mode: 0o644 });
    const api = launch('kube-apiserver', [
      '--bind-address',
      '127.0.0.1',
      '--secure-port',
      String(port),
      '--cert-dir',
      certDir,
      '--etcd-servers',
      `unix://${socket}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-signing-key-file=${join(pki, 'sa-signer.key')}`,
      `--service-account-key-file=${join(pki, 'sa-signer.crt')}`,
      '--authorization-mode=Node,RBAC',
      '--feature-gates=WatchList=true',
      '--watch-cache=false',
      `--token-auth-file=${tokens}`,
    ]);
    for (let attempt = 0; attempt < 1200 && !existsSync(join(certDir, 'apiserver.crt')); attempt++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await answers(`https://localhost:${port}/healthz`, await readFile(join(certDir, 'apiserver.crt'), 'utf8'), api);
    assert.match(api.output(), /--feature-gates has no effect/);
    assert.match(api.output(), /--watch-cache has no effect/);
    assert.match(
      api.output(),
      /tokens\.csv: private material that every user can read; run chmod 0600 \/.*tokens\.csv/,
    );
  });

  it('rejects unknown and unsupported flags', async () => {
    const signing = join(directory, 'signing.key');
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    await writeFile(signing, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    const open = join(directory, 'open.csv');
    await writeFile(open, 't,u,1\n', { mode: 0o604 });
    const withKey = [`--service-account-signing-key-file=${signing}`, '--service-account-issuer=https://x.test'];
    const cases: [string[], RegExp][] = [
      [['--no-such-flag=1'], /unknown flag --no-such-flag/],
      [['--secure-port=abc'], /--secure-port: "abc" is not a whole number/],
      [['--authorization-mode=ABAC'], /--authorization-mode: "ABAC" is not accepted/],
      [['--feature-gates=Whatever=true'], /--feature-gates: unrecognized feature gate: Whatever$/],
      [['--etcd-prefix=/other'], /--etcd-prefix=\/other: objects are always stored below \/registry/],
      [['--enable-admission-plugins=ImagePolicyWebhook'], /"ImagePolicyWebhook" is not supported/],
      [['--enable-admission-plugins=Bogus'], /there is no admission plug-in "Bogus"/],
      [[], /--service-account-signing-key-file: is missing/],
      [
        [...withKey, `--token-auth-file=${open}`],
        /open\.csv: private material that every user can read; run chmod 0600/,
      ],
      [[...withKey, '--proxy-client-cert-file=/x.crt'], /--proxy-client-key-file: is required with/],
      [[...withKey, '--proxy-client-key-file=/x.key'], /--proxy-client-cert-file: is required with/],
    ];
    for (const [args, message] of cases) {
      await assert.rejects(async () => {
        const plan = planApi(['--cert-dir', join(directory, 'refused'), ...args]);
        assert.equal(plan.kind, 'run');
        await apiConfigOf(plan.values, { referredToBy: 'kube-apiserver', ownHost: false, soleWriter: false });
      }, message);
    }
    const unknown = launch('kube-apiserver', ['--no-such-flag=1']);
    assert.equal(await unknown.exited, 1);
    assert.match(unknown.output(), /^kube-apiserver: unknown flag --no-such-flag: see kube-apiserver --help\n$/);
    const help = launch('kube-apiserver', ['--help']);
    assert.equal(await help.exited, 0);
    assert.match(help.output(), /^ {2}--audit-policy-file/m);
    assert.doesNotMatch(help.output(), /--insecure-port/);
    const program = [process.execPath, MAIN];
    const assets = await prepareEnvtest(
      join(directory, 'assets'),
      { PATH: process.env['PATH'] },
      'kubernetes',
      program,
    );
    assert.equal(await prepareEnvtest(join(directory, 'assets'), {}, 'okd', program), assets);
    assert.match((await kubectl(join(assets, 'kube-apiserver'), ['--version'])).text, /^Kubernetes v1\.\d+/);
    assert.match((await kubectl(join(assets, 'etcd'), ['--version'])).text, /^etcd Version: /);
    assert.match(await readFile(join(assets, 'kube-apiserver'), 'utf8'), /'api' '--profile=okd' "\$@"/);
    const wrong = launch('hyperedge', ['api', '--profile=plain', '--etcd-servers=http://127.0.0.1:1']);
    assert.notEqual(await wrong.exited, 0);
    assert.match(wrong.output(), /--profile: "plain" is not a profile; give one of kubernetes, okd/);
  });
});
