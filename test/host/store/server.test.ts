/** `etcd` as a process: started in the ways of other programs, and used with Debian's etcdctl. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { connect } from 'node:tls';
import { etcdAccess } from '../../../src/host/store/access.ts';
import { type Certificates, makeCertificates } from '../../store/harness.ts';
import { MAIN } from '../../support/main-program.ts';
import { freePorts } from '../../support/ports.ts';

const READY = 'ready to serve client requests';

let directory = '';
let certificates: Certificates;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'etcd-process-'));
  await mkdir(join(directory, 'pki'));
  certificates = await makeCertificates(join(directory, 'pki'));
});
after(() => rm(directory, { recursive: true }));

const pki = (name: string): string => join(directory, 'pki', name);

interface Etcd {
  readonly child: ChildProcess;
  readonly stderr: () => string;
  readonly exited: Promise<number | null>;
}

const running = new Set<Etcd>();
afterEach(async () => {
  for (const etcd of running) etcd.child.kill('SIGKILL');
  await Promise.all([...running].map((etcd) => etcd.exited));
  running.clear();
});

/** Removes log lines that depend on the load of the machine. */
const withoutLag = (text: string): string => text.replaceAll(/^.* event loop was blocked .*\n/gm, '');

/** Adds a free peer port, because other tests run at the same time and the default port is fixed. */
function withOwnPeerPort(args: readonly string[], env: Readonly<Record<string, string>>): readonly string[] {
  const printed = args.some((arg) => /^--?(listen-peer-urls|config|config-file)\b/.test(arg));
  return printed || 'ETCD_LISTEN_PEER_URLS' in env ? args : [...args, '--listen-peer-urls=http://localhost:0'];
}

function launch(args: readonly string[], env: Readonly<Record<string, string>> = {}, argv0 = 'etcd'): Etcd {
  const child = spawn(process.execPath, [MAIN, ...withOwnPeerPort(args, env)], {
    argv0,
    cwd: directory,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const exited = new Promise<number | null>((resolve) => {
    child.once('close', (code) => resolve(code));
  });
  const etcd = { child, stderr: () => stderr, exited };
  running.add(etcd);
  return etcd;
}

/** Resolves when the process logs that it is ready; rejects if it exits. */
async function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  argv0 = 'etcd',
): Promise<Etcd> {
  const etcd = launch(args, env, argv0);
  await waitForOutput(etcd, READY);
  return etcd;
}

/** Resolves when the log contains `words`; rejects if the process exits. */
async function waitForOutput(etcd: Etcd, words: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (etcd.stderr().includes(words)) resolve();
    };
    etcd.child.stderr?.on('data', look);
    look();
    void etcd.exited.then((code) => reject(new Error(`ended with ${code}: ${etcd.stderr()}`)));
  });
}

async function stop(etcd: Etcd): Promise<void> {
  etcd.child.kill('SIGTERM');
  assert.equal(await etcd.exited, 0, etcd.stderr());
}

function etcdctl(...args: readonly string[]): Promise<{ ok: boolean; text: string }> {
  return new Promise((resolve) => {
    const options = { timeout: 20_000, env: { PATH: process.env['PATH'], ETCDCTL_API: '3' } };
    execFile(
      '/usr/bin/etcdctl',
      ['--command-timeout=4s', '--dial-timeout=2s', ...args],
      options,
      (error, stdout, stderr) => {
        resolve({ ok: error === null, text: `${stdout}${stderr}` });
      },
    );
  });
}

async function works(...connection: readonly string[]): Promise<void> {
  const put = await etcdctl(...connection, 'put', 'k', 'v');
  assert.equal(put.text, 'OK\n');
  assert.equal((await etcdctl(...connection, 'get', 'k')).text, 'k\nv\n');
}

function http(url: string, headers: Readonly<Record<string, string>> = {}): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    }).on('error', reject);
  });
}

test('starts with the arguments of controller-runtime’s envtest', async () => {
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const data = join(directory, 'envtest');
  const args = [
    '--listen-peer-urls=http://localhost:0',
    `--advertise-client-urls=${url}`,
    `--listen-client-urls=${url}`,
    `--data-dir=${data}`,
    '--unsafe-no-fsync',
  ];
  const etcd = await start(args);
  assert.match(etcd.stderr(), new RegExp(`serving insecure client requests on 127\\.0\\.0\\.1:${port}\n`));
  assert.deepEqual(await http(`${url}/health`), { status: 200, body: '{"health":"true","reason":""}' });
  await works('--endpoints', url);
  const members = await etcdctl('--endpoints', url, 'member', 'list');
  assert.match(members.text, new RegExp(`, started, default, http://localhost:2380, ${url}, false`));
  await stop(etcd);
  assert.equal((await stat(data)).mode & 0o777, 0o700);
  const again = await start(args);
  assert.equal((await etcdctl('--endpoints', url, 'get', 'k')).text, 'k\nv\n');
  await stop(again);
});

test('starts with environment variables only, as in a systemd unit, also as hyperedge etcd', async () => {
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const env = {
    ETCD_NAME: 'one',
    ETCD_LISTEN_CLIENT_URLS: url,
    ETCD_ADVERTISE_CLIENT_URLS: url,
    ETCD_LISTEN_PEER_URLS: 'http://127.0.0.1:0',
    ETCD_LOG_OUTPUTS: 'stderr',
    ETCD_WAL_DIR: join(directory, 'wal'),
  };
  const etcd = await start(['etcd'], env, 'hyperedge');
  assert.match(etcd.stderr(), / W etcd ETCD_WAL_DIR has no effect: /);
  await works('--endpoints', url);
  assert.ok((await stat(join(directory, 'one.etcd/revisions.db'))).isFile());
  await stop(etcd);
});

test('listens on a Unix socket, on all IPv4 and IPv6 addresses, and on a separate metrics address', async () => {
  const [port, metrics] = await freePorts(2);
  const socket = join(directory, 'e.sock');
  const data = join(directory, 'many');
  const args = [
    `--listen-client-urls=http://0.0.0.0:${port},unix://${socket}`,
    `--advertise-client-urls=http://127.0.0.1:${port}`,
    `--listen-metrics-urls=http://127.0.0.1:${metrics}`,
    '--host-whitelist=127.0.0.1,etcd.example',
    `--data-dir=${data}`,
  ];
  const killed = await start(args);
  killed.child.kill('SIGKILL');
  await killed.exited;
  // A socket left by the previous process does not prevent a start.
  await start(args);
  await works('--endpoints', `http://127.0.0.1:${port}`);
  await works('--endpoints', `http://[::1]:${port}`);
  await works('--endpoints', `unix://${socket}`);
  const admin = (await etcdAccess({ root: directory, endpoints: `unix://${socket}` })).open();
  assert.equal((await admin.members()).length, 1);
  admin.close();
  const at = (path: string): string => `http://127.0.0.1:${metrics}${path}`;
  assert.match((await http(at('/metrics'))).body, /^etcd_server_has_leader 1$/m);
  assert.equal((await http(at('/health'))).status, 200);
  assert.equal((await http(at('/version'))).status, 404);
  assert.equal(
    (await etcdctl('--endpoints', `http://127.0.0.1:${metrics}`, 'get', 'k', '--command-timeout=2s')).ok,
    false,
  );
  const client = `http://127.0.0.1:${port}/version`;
  assert.equal((await http(client)).status, 200);
  assert.equal((await http(client, { host: 'etcd.example:1' })).status, 200);
  assert.equal((await http(client, { host: 'rebound.example' })).status, 421);
});

test('notifies systemd of its start in a unit of Type=notify', async () => {
  const [port] = await freePorts(1);
  const socket = join(directory, 'notify');
  const systemd = spawn('socat', ['-u', `UNIX-RECV:${socket}`, 'STDOUT'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => systemd.once('close', resolve));
  let heard = '';
  systemd.stdout.on('data', (chunk) => {
    heard += chunk;
  });
  try {
    await eventually('the socket', () =>
      stat(socket).then(
        () => true,
        () => false,
      ),
    );
    const args = [`--listen-client-urls=http://127.0.0.1:${port}`, `--advertise-client-urls=http://127.0.0.1:${port}`];
    const etcd = await start([...args, `--data-dir=${join(directory, 'notifying')}`], { NOTIFY_SOCKET: socket });
    await eventually('the message', async () => heard.startsWith('READY=1'));
    await stop(etcd);
  } finally {
    systemd.kill();
    await ended;
  }
});

const asClient = (): string[] => ['--cacert', pki('ca.crt'), '--cert', pki('client.crt'), '--key', pki('client.key')];

/** Creates another server certificate and key with the same authority. */
async function otherServer(name: string): Promise<void> {
  const args = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    '-CA',
    pki('ca.crt'),
  ];
  const rest = [
    '-CAkey',
    pki('ca.key'),
    '-keyout',
    pki(`${name}.key`),
    '-out',
    pki(`${name}.crt`),
    '-subj',
    `/CN=${name}`,
  ];
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1,DNS:client.example', '-addext', 'basicConstraints=CA:FALSE'];
  await openssl(...args, ...rest, ...names);
}

function openssl(...args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile('openssl', [...args], { cwd: join(directory, 'pki') }, (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}

/** Common name of the server certificate on a new connection. */
function shownBy(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, ca: certificates.ca, ...certificates.client };
    const socket = connect(options, () => {
      const { CN } = socket.getPeerCertificate().subject;
      socket.destroy();
      resolve(String(CN));
    }).on('error', reject);
  });
}

async function eventually(what: string, probe: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await probe())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within 10 s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

test('replaces and revokes https certificates at run time, with client certificates required', async () => {
  const [port] = await freePorts(1);
  const url = `https://127.0.0.1:${port}`;
  for (const name of ['crt', 'key']) await copyFile(pki(`server.${name}`), pki(`served.${name}`));
  await otherServer('renewed');
  await writeFile(
    pki('ca.conf'),
    `[ca]\ndefault_ca=d\n[d]\ndatabase=${pki('index.txt')}\ndefault_md=sha256\ndefault_crl_days=2\n`,
  );
  await writeFile(pki('index.txt'), '');
  const list = (): Promise<void> =>
    openssl('ca', '-config', 'ca.conf', '-gencrl', '-cert', 'ca.crt', '-keyfile', 'ca.key', '-out', 'crl.pem');
  await list();
  const etcd = await start([
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--data-dir=${join(directory, 'tls')}`,
    '--client-cert-auth',
    `--trusted-ca-file=${pki('ca.crt')}`,
    `--cert-file=${pki('served.crt')}`,
    `--key-file=${pki('served.key')}`,
    `--client-crl-file=${pki('crl.pem')}`,
    '--cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  ]);
  assert.match(etcd.stderr(), new RegExp(`serving client requests on 127\\.0\\.0\\.1:${port}\n`));
  await works('--endpoints', url, ...asClient());
  assert.equal(
    (await etcdctl('--endpoints', url, '--cacert', pki('ca.crt'), 'get', 'k')).ok,
    false,
    'without certificate',
  );
  assert.equal(
    (await etcdctl('--endpoints', `http://127.0.0.1:${port}`, 'get', 'k', '--command-timeout=2s')).ok,
    false,
    'without TLS',
  );

  assert.equal(await shownBy(port ?? 0), 'etcd');
  await copyFile(pki('renewed.key'), pki('served.key'));
  // Only the certificate or the key is replaced, so the old pair stays in use.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  assert.equal(await shownBy(port ?? 0), 'etcd');
  await copyFile(pki('renewed.crt'), pki('served.crt'));
  await eventually('the new certificate', async () => (await shownBy(port ?? 0)) === 'renewed');
  await works('--endpoints', url, ...asClient());

  await openssl('ca', '-config', 'ca.conf', '-revoke', 'client.crt', '-cert', 'ca.crt', '-keyfile', 'ca.key');
  await list();
  await openssl('crl', '-in', 'crl.pem', '-outform', 'DER', '-out', 'crl.pem');
  await eventually(
    'the revocation',
    async () => !(await etcdctl('--endpoints', url, ...asClient(), 'get', 'k', '--command-timeout=2s')).ok,
  );
  const other = ['--cacert', pki('ca.crt'), '--cert', pki('renewed.crt'), '--key', pki('renewed.key')];
  await works('--endpoints', url, ...other);
  assert.match(etcd.stderr(), /connection refused client=\S+ cause="the certificate is revoked"/);
});

test('accepts only client certificates with allowed host names', async () => {
  const [port] = await freePorts(1);
  const url = `https://127.0.0.1:${port}`;
  await otherServer('named');
  await start([
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--data-dir=${join(directory, 'named')}`,
    `--trusted-ca-file=${pki('ca.crt')}`,
    `--cert-file=${pki('server.crt')}`,
    `--key-file=${pki('server.key')}`,
    '--client-cert-allowed-hostname=client.example',
    '--tls-min-version=TLS1.3',
  ]);
  const named = ['--cacert', pki('ca.crt'), '--cert', pki('named.crt'), '--key', pki('named.key')];
  await works('--endpoints', url, ...named);
  assert.equal((await etcdctl('--endpoints', url, ...asClient(), 'get', 'k', '--command-timeout=2s')).ok, false);
});

test('serves the same port with and without TLS, and the JSON gateway over HTTP/2 to curl', async () => {
  const [port] = await freePorts(1);
  const urls = `http://127.0.0.1:${port},https://127.0.0.1:${port}`;
  const etcd = await start([
    `--data-dir=${join(directory, 'both')}`,
    `--listen-client-urls=${urls}`,
    `--advertise-client-urls=${urls}`,
    `--cert-file=${pki('server.crt')}`,
    `--key-file=${pki('server.key')}`,
    '--unsafe-no-fsync',
  ]);
  assert.match(etcd.stderr(), new RegExp(`serving insecure client requests on 127\\.0\\.0\\.1:${port}\n`));
  assert.match(etcd.stderr(), new RegExp(`serving client requests on 127\\.0\\.0\\.1:${port}\n`));
  await works('--endpoints', `http://127.0.0.1:${port}`);
  await works('--endpoints', `https://127.0.0.1:${port}`, '--cacert', pki('ca.crt'));
  const curl = await new Promise<string>((resolve) => {
    const url = `https://127.0.0.1:${port}/v3/kv/range`;
    const args = ['-s', '-w', ' %{http_version}', '--cacert', pki('ca.crt'), '-X', 'POST', '-d', '{"key":"aw=="}', url];
    execFile('curl', args, { timeout: 20_000 }, (error, stdout) => resolve(error?.message ?? stdout));
  });
  assert.match(curl, /"kvs":\[\{"key":"aw==".*"value":"dg=="\}\],"count":"1"\} 2$/);
  await stop(etcd);
});

test('etcd generates its automatic TLS certificates once', async () => {
  const [port] = await freePorts(1);
  const url = `https://127.0.0.1:${port}`;
  const data = join(directory, 'auto');
  const args = ['--auto-tls', `--listen-client-urls=${url}`, `--advertise-client-urls=${url}`, `--data-dir=${data}`];
  const etcd = await start(args);
  const cert = join(data, 'fixtures/client/cert.pem');
  const made = await readFile(cert, 'utf8');
  assert.equal((await stat(join(data, 'fixtures/client/key.pem'))).mode & 0o777, 0o600);
  await works('--endpoints', url, '--cacert', cert);
  await stop(etcd);
  await stop(await start(args));
  assert.equal(await readFile(cert, 'utf8'), made);
});

test('etcd reports unsupported arguments in one line', async () => {
  const refused = async (args: readonly string[], message: RegExp): Promise<void> => {
    const etcd = launch([
      '--listen-client-urls=http://127.0.0.1:0',
      '--advertise-client-urls=http://127.0.0.1:1',
      ...args,
    ]);
    assert.equal(await etcd.exited, 1, etcd.stderr());
    assert.match(withoutLag(etcd.stderr()), message);
    const errors = etcd
      .stderr()
      .trim()
      .split('\n')
      .filter((line) => !/^\S+ W etcd /.test(line));
    assert.equal(errors.length, 1, etcd.stderr());
  };
  const foreign = join(directory, 'foreign');
  await mkdir(join(foreign, 'member'), { recursive: true });
  await refused(
    [`--data-dir=${foreign}`],
    /^etcd: .+foreign holds the data of another etcd, .+ name another --data-dir\n$/,
  );
  const fresh = `--data-dir=${join(directory, 'fresh')}`;
  await refused(
    [fresh, '--name=a', '--initial-cluster=b=http://10.0.0.1:1'],
    /^etcd: --initial-cluster does not name "a"/,
  );
  await refused(
    [fresh, `--cert-file=${pki('ca.crt')}`, `--key-file=${pki('server.key')}`, '--log-level=error'],
    /server\.key is not the key of .+ca\.crt/,
  );
  await refused(
    [fresh, `--cert-file=${pki('none.crt')}`, `--key-file=${pki('server.key')}`],
    /cannot read .+none\.crt/,
  );
  await refused([fresh, '--auth-token=frob'], /^etcd: .*auth-token/);
});

test('ignores the initial cluster if the data directory exists, and writes a log file with the configured level', async () => {
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const file = join(directory, 'etcd.log');
  const args = [
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--data-dir=${join(directory, 'begun')}`,
  ];
  await stop(await start(args));
  const quiet = launch([
    ...args,
    '--initial-cluster=b=http://10.0.0.1:1',
    `--log-outputs=${file}`,
    '--log-level=warn',
    '--wal-dir=x',
  ]);
  await eventually('an answer', () =>
    http(`${url}/health`).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  await stop(quiet);
  assert.equal(quiet.stderr(), '');
  assert.match(withoutLag(await readFile(file, 'utf8')), /^\S+ W etcd --wal-dir has no effect: [^\n]+\n$/);
});

test('three members with etcd’s flags and peer TLS reject foreign clients', async () => {
  const ports = await freePorts(6);
  const names = ['a', 'b', 'c'];
  const peers = ports.slice(3).map((port) => `https://127.0.0.1:${port}`);
  const urls = ports.slice(0, 3).map((port) => `http://127.0.0.1:${port}`);
  const argsOf = (i: number): string[] => [
    `--name=${names[i]}`,
    `--data-dir=${join(directory, `of-three-${names[i]}`)}`,
    `--listen-client-urls=${urls[i]}`,
    `--advertise-client-urls=${urls[i]}`,
    `--listen-peer-urls=${peers[i]}`,
    `--initial-advertise-peer-urls=${peers[i]}`,
    `--initial-cluster=${names.map((name, j) => `${name}=${peers[j]}`).join()}`,
    '--initial-cluster-token=of-three',
    '--peer-client-cert-auth',
    `--peer-trusted-ca-file=${pki('ca.crt')}`,
    `--peer-cert-file=${pki('server.crt')}`,
    `--peer-key-file=${pki('server.key')}`,
    '--max-txn-ops=2',
    '--max-request-bytes=1000',
    '--unsafe-no-fsync',
  ];
  const first = launch(argsOf(0));
  await waitForOutput(first, 'enabled capabilities for version 3.5');
  const others = await Promise.all([start(argsOf(1)), start(argsOf(2))]);
  await waitForOutput(first, READY);
  const words = first.stderr().split('\n');
  const line = (part: string): number => words.findIndex((each) => each.includes(part));
  // Tools that start several members wait for these messages, so they must not appear before there is a leader.
  const leader = words.findIndex((each) => /became leader|leader changed/.test(each));
  assert.ok(leader >= 0 && leader < line('published this member to the cluster'), first.stderr());
  assert.ok(line('published this member to the cluster') < line(READY), first.stderr());
  const members = [first, ...others];
  const all = `--endpoints=${urls.join()}`;
  await works(all);
  const list = await etcdctl(all, 'member', 'list');
  assert.equal(list.text.trim().split('\n').length, 3, list.text);
  for (const [i, url] of urls.entries())
    assert.match((await etcdctl(`--endpoints=${url}`, 'get', 'k')).text, /v/, names[i]);
  const large = await etcdctl(all, 'put', 'k', 'x'.repeat(1001));
  assert.match(large.text, /etcdserver: request is too large/);
  // Without a certificate of the members' authority, the connection fails before any request.
  const refused = await new Promise<string>((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: ports[3], rejectUnauthorized: false, minVersion: 'TLSv1.3' });
    socket.on('data', () => resolve('it was answered'));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('close', () => resolve('closed'));
    socket.on('secureConnect', () => socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'));
  });
  assert.notEqual(refused, 'it was answered');
  const old = await new Promise<string>((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: ports[3], rejectUnauthorized: false, maxVersion: 'TLSv1.2' });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('secureConnect', () => resolve('spoken to'));
  });
  assert.match(old, /PROTOCOL_VERSION|ECONNRESET|ALERT/);
  members[0]?.child.kill('SIGKILL');
  await members[0]?.exited;
  assert.equal((await etcdctl(`--endpoints=${urls[1]}`, 'put', 'k', 'w')).text, 'OK\n');
  const again = await start(argsOf(0));
  assert.equal((await etcdctl(`--endpoints=${urls[0]}`, 'get', 'k')).text, 'k\nw\n');
  for (const member of [again, ...members.slice(1)]) await stop(member);
});

test('a store with an exhausted quota accepts only deletes until it is compacted and the alarm disarmed', async () => {
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const etcd = await start([
    `--data-dir=${join(directory, 'quota')}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    '--listen-peer-urls=http://localhost:0',
    '--quota-backend-bytes=300000',
    '--unsafe-no-fsync',
  ]);
  const to = `--endpoints=${url}`;
  const value = 'x'.repeat(100_000);
  let last = { ok: true, text: '' };
  for (let i = 0; i < 40 && last.ok; i += 1) {
    last = await etcdctl(to, 'put', `k${i % 2}`, value);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.match(last.text, /etcdserver: mvcc: database space exceeded/);
  assert.match((await etcdctl(to, 'alarm', 'list')).text, /alarm:NOSPACE/);
  assert.equal((await http(`${url}/health`)).status, 503);
  assert.equal((await etcdctl(to, 'del', 'k1')).text, '1\n');
  const status = await etcdctl(to, 'get', 'k0', '-w', 'json');
  const { revision } = (JSON.parse(status.text) as { header: { revision: number } }).header;
  assert.match((await etcdctl(to, 'compact', String(revision), '--physical')).text, /compacted revision/);
  assert.match((await etcdctl(to, 'defrag')).text, /Finished defragmenting/);
  assert.match((await etcdctl(to, 'alarm', 'disarm')).text, /alarm:NOSPACE/);
  await works(to);
  await stop(etcd);
});
