import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile as readText, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, test } from 'node:test';
import { parseDuration } from '../../../src/base/time/duration.ts';
import { planEtcd } from '../../../src/host/store/run.ts';
import { FLAGS } from '../../../src/store/config/flags.ts';
import { type EtcdParsed, EtcdUsageProblem, readFile, settingsOf } from '../../../src/store/config/index.ts';
import { parseInteger, parseUrls } from '../../../src/wire/go-flag-values.ts';
import { DEBIAN_ETCD, isInstalled } from '../harness.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'etcd-flags-'));
});
after(() => rm(directory, { recursive: true }));

type Environment = Readonly<Record<string, string>>;

async function parse(argv: readonly string[], environment: Environment = {}): Promise<EtcdParsed> {
  const plan = await planEtcd({ argv, environment, own: undefined });
  assert.equal(plan.kind, 'run');
  return (plan as { parsed: EtcdParsed }).parsed;
}

/** Exit code and message of planning a start; 0 if the member would run. */
async function verdict(
  argv: readonly string[],
  environment: Environment = {},
): Promise<{ code: number; text: string }> {
  try {
    const { settings } = await parse(argv, environment);
    const { bootstrapProblem } = settings.cluster;
    return bootstrapProblem === undefined ? { code: 0, text: '' } : { code: 1, text: bootstrapProblem };
  } catch (error) {
    if (error instanceof EtcdUsageProblem) return { code: error.exitCode, text: error.message };
    throw error;
  }
}

const fromText = (text: string): EtcdParsed =>
  settingsOf(readFile('etcd.yaml', text), { fromFile: true, locate: (path) => path, defaultHost: '192.0.2.7' });

test("without arguments, the configuration has etcd's defaults", async () => {
  const { settings, warnings } = await parse([]);
  assert.deepEqual(warnings, []);
  assert.deepEqual(settings, {
    name: 'default',
    dataDirectory: 'default.etcd',
    listen: {
      client: [{ scheme: 'http', host: 'localhost', port: 2379, text: 'http://localhost:2379' }],
      clientHttp: [],
      peer: [{ scheme: 'http', host: 'localhost', port: 2380, text: 'http://localhost:2380' }],
      metrics: [],
      reusePort: false,
    },
    advertise: { client: ['http://localhost:2379'], peer: ['http://localhost:2380'] },
    cluster: {
      members: [{ name: 'default', peerUrls: ['http://localhost:2380'] }],
      bootstrapProblem: undefined,
      state: 'new',
      token: 'etcd-cluster',
      forceNew: false,
      strictReconfigCheck: true,
      maxLearners: 1,
    },
    raft: { heartbeatMs: 100, electionMs: 1000, adapts: true, advanceInitialTicks: true, snapshotCount: 100_000 },
    tls: {
      client: {
        certFile: undefined,
        keyFile: undefined,
        trustedCaFile: undefined,
        requireCertificate: false,
        crlFile: undefined,
        allowedHostnames: [],
        allowedCommonNames: [],
        automatic: false,
      },
      peer: {
        certFile: undefined,
        keyFile: undefined,
        clientCertFile: undefined,
        clientKeyFile: undefined,
        trustedCaFile: undefined,
        requireCertificate: false,
        crlFile: undefined,
        allowedHostnames: [],
        allowedCommonNames: [],
        automatic: false,
      },
      limits: { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: undefined, selfSignedYears: 1 },
    },
    quotaBytes: 0,
    compaction: undefined,
    limits: { requestBytes: 1_572_864, transactionOperations: 128, concurrentStreams: 4_294_967_295 },
    keepAlive: { intervalMs: 7_200_000, timeoutMs: 20_000 },
    auth: { token: 'simple', simpleTokenTtlSeconds: 300, byCertificate: false, bcryptCost: 10 },
    corruption: { checkAtStart: false, intervalMs: 0 },
    progressNotifyMs: 600_000,
    extensiveMetrics: false,
    slow: { applyMs: 100, requestMs: 300 },
    jsonGateway: true,
    hostWhitelist: undefined,
    unsafeNoFsync: false,
    log: { least: 'info', verbosity: 2, outputs: ['stderr'] },
  });
});

describe('values of etcd flags', () => {
  const cases: readonly [string, readonly string[], (parsed: EtcdParsed['settings']) => unknown, unknown][] = [
    ['a flag with one dash', ['-name', 'a'], (s) => s.name, 'a'],
    ['a flag with two dashes', ['--name', 'a'], (s) => s.name, 'a'],
    ['a value that contains an equals sign', ['--name=a=b'], (s) => s.name, 'a=b'],
    ['a repeated flag, whose last value applies', ['--name=a', '-name=b'], (s) => s.name, 'b'],
    ['no --data-dir as a directory named after the member', ['--name=a'], (s) => s.dataDirectory, 'a.etcd'],
    ['a data directory', ['--data-dir=/x/y'], (s) => s.dataDirectory, '/x/y'],
    ['a boolean flag without a value', ['--unsafe-no-fsync'], (s) => s.unsafeNoFsync, true],
    ['a boolean flag with a value', ['--strict-reconfig-check=f'], (s) => s.cluster.strictReconfigCheck, false],
    ['a hexadecimal number', ['--heartbeat-interval=0x10'], (s) => s.raft.heartbeatMs, 16],
    [
      'a name without --initial-cluster as a cluster of one member',
      ['--name=x'],
      (s) => s.cluster.members,
      [{ name: 'x', peerUrls: ['http://localhost:2380'] }],
    ],
    [
      'the members of --initial-cluster',
      ['--initial-cluster=b=http://10.0.0.2:1,default=http://localhost:2380,b=http://10.0.0.3:1'],
      (s) => s.cluster.members,
      [
        { name: 'b', peerUrls: ['http://10.0.0.2:1', 'http://10.0.0.3:1'] },
        { name: 'default', peerUrls: ['http://localhost:2380'] },
      ],
    ],
    [
      'client URLs with addresses and Unix sockets',
      [
        '--listen-client-urls=https://[::]:1,unix:///run/e.sock,unixs://localhost:m1',
        '--advertise-client-urls=https://h:1',
        '--auto-tls',
      ],
      (s) => s.listen.client.map(({ scheme, host, port, path }) => [scheme, host, port, path]),
      [
        ['https', '::', 1, undefined],
        ['unix', '', 0, '/run/e.sock'],
        ['unixs', '', 0, 'localhost:m1'],
      ],
    ],
    [
      'a compaction retention without a unit as hours',
      ['--auto-compaction-retention=2'],
      (s) => s.compaction,
      { mode: 'periodic', retentionMs: 7_200_000 },
    ],
    [
      'a compaction retention in minutes',
      ['--auto-compaction-retention=5m'],
      (s) => s.compaction,
      { mode: 'periodic', retentionMs: 300_000 },
    ],
    [
      'a compaction retention in revisions',
      ['--auto-compaction-mode=revision', '--auto-compaction-retention=1000'],
      (s) => s.compaction,
      { mode: 'revision', revisions: 1000 },
    ],
    [
      'a trusted CA, which makes client certificates required',
      ['--trusted-ca-file=ca'],
      (s) => s.tls.client.requireCertificate,
      true,
    ],
    ['a keep-alive interval', ['--grpc-keepalive-interval=1m30s'], (s) => s.keepAlive.intervalMs, 90_000],
    [
      'the options of JSON web tokens',
      ['--auth-token=jwt,pub-key=p,priv-key=k,sign-method=RS512,ttl=10m'],
      (s) => s.auth.token,
      'jwt,pub-key=p,priv-key=k,sign-method=RS512,ttl=10m',
    ],
    ['a host white list', ['--host-whitelist=A.example,b'], (s) => [...(s.hostWhitelist ?? [])], ['a.example', 'b']],
    ['the log level debug', ['--log-level=debug'], (s) => s.log, { least: 'info', verbosity: 4, outputs: ['stderr'] }],
    [
      'log outputs',
      ['--log-level=warn', '--log-outputs=stdout,/x.log'],
      (s) => s.log,
      { least: 'warn', verbosity: 2, outputs: ['stdout', '/x.log'] },
    ],
    [
      'cipher suites of Go',
      ['--cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'],
      (s) => s.tls.limits.ciphers,
      'ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256',
    ],
  ];
  for (const [name, argv, pick, expected] of cases) {
    it(`parses ${name}`, async () => {
      const { settings, warnings } = await parse(argv);
      assert.deepEqual(pick(settings), expected);
      assert.deepEqual(warnings, []);
    });
  }
});

test('reads flags from environment variables, warns of unknown variables, and rejects a flag set in both places', async () => {
  const { settings, warnings } = await parse(['--name=flag'], {
    ETCD_DATA_DIR: '/data',
    ETCD_MAX_TXN_OPS: '',
    ETCD_FROB: '1',
    ETCDCTL_API: '3',
  });
  assert.deepEqual(
    [settings.name, settings.dataDirectory, settings.limits.transactionOperations],
    ['flag', '/data', 128],
  );
  assert.deepEqual(warnings, ['unknown variable ETCD_FROB ignored']);
  assert.deepEqual(await verdict(['--name=flag'], { ETCD_NAME: 'variable' }), {
    code: 1,
    text: 'ETCD_NAME and --name are both given; unset the variable or omit the flag',
  });
});

test('ignores flags and environment variables if a configuration file is given', async () => {
  const file = join(directory, 'a.yaml');
  await writeFile(file, 'name: file\nclient-transport-security:\n');
  const parsed = await parse(['--config-file', file, '--data-dir=/x'], { ETCD_DATA_DIR: '/y' });
  assert.deepEqual([parsed.settings.name, parsed.settings.dataDirectory], ['file', 'file.etcd']);
  assert.deepEqual(parsed.warnings, [`--data-dir: ignored, ${file} takes precedence`]);
  const byVariable = await parse([], { ETCD_CONFIG_FILE: file });
  assert.equal(byVariable.settings.name, 'file');
});

test("accepts etcd's sample configuration file, which has empty fields", () => {
  const { settings, warnings } = fromText(`
name: 'default'
data-dir:
wal-dir:
snapshot-count: 10000
heartbeat-interval: 100
election-timeout: 1000
quota-backend-bytes: 0
listen-peer-urls: http://0.0.0.0:2380
listen-client-urls: http://localhost:2379,http://10.0.0.1:2379
max-snapshots: 5
cors:
initial-advertise-peer-urls:
discovery:
discovery-fallback: 'proxy'
initial-cluster:
initial-cluster-state: 'new'
strict-reconfig-check: false
enable-v2: true
proxy: 'off'
grpc-keepalive-interval: 60000000000
auto-compaction-retention: "1"
client-transport-security:
  cert-file: server.crt
  key-file: server.key
  client-cert-auth: false
  trusted-ca-file:
  auto-tls: false
peer-transport-security:
  allowed-cn: [a, "b"]
log-level: debug
log-outputs: [stdout]
cipher-suites: [
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
]
`);
  assert.equal(settings.raft.snapshotCount, 10_000);
  assert.equal(settings.listen.client.length, 2);
  assert.deepEqual(
    settings.advertise.peer,
    ['http://192.0.2.7:2380'],
    'who listens on all addresses advertises its own',
  );
  assert.deepEqual(settings.cluster.members, [{ name: 'default', peerUrls: ['http://192.0.2.7:2380'] }]);
  assert.equal(settings.keepAlive.intervalMs, 60_000);
  assert.deepEqual([settings.tls.client.certFile, settings.tls.client.requireCertificate], ['server.crt', false]);
  assert.deepEqual(settings.tls.peer.allowedCommonNames, ['a', 'b']);
  assert.deepEqual(settings.log, { least: 'info', verbosity: 4, outputs: ['stdout'] });
  assert.deepEqual(warnings, [
    'etcd.yaml: enable-v2 has no effect: the v2 API is not served',
    'http://localhost:2379 does not use TLS; the certificate is not used for this URL',
    'http://10.0.0.1:2379 does not use TLS; the certificate is not used for this URL',
  ]);
});

test('reports errors in an etcd configuration file with line and field', () => {
  const refused = (text: string, message: RegExp): void => {
    assert.throws(() => fromText(text), message);
  };
  refused('name: a\nfrob: 1\n', /^EtcdUsageProblem: etcd\.yaml:2: frob: unknown field/);
  refused('name: a\nname: b\n', /etcd\.yaml:2: name: given twice/);
  refused('client-transport-security:\n  frob: 1\n', /etcd\.yaml:2: client-transport-security\.frob: unknown field/);
  refused('heartbeat-interval: soon\n', /etcd\.yaml:1: heartbeat-interval: "soon" is not a number/);
  refused('peer-transport-security: {client-cert-auth: perhaps}\n', /client-cert-auth: "perhaps" is not accepted/);
  refused('listen-client-urls: [ {a: 1} ]\n', /etcd\.yaml:1: listen-client-urls: must be a value or a list/);
  refused('discovery: http://x\n', /etcd\.yaml: discovery=http:\/\/x: discovery is not offered/);
  refused('election-timeout: 200\n', /etcd\.yaml: election-timeout is 200 ms; it must be at least five times/);
});

test('accepts etcd flags that have no effect with a warning, and rejects unsupported ones', async () => {
  const { warnings } = await parse([
    '--wal-dir=/w',
    '--max-wals=9',
    '--pre-vote=false',
    '--v',
    '--logger=capnslog',
    '--proxy=off',
  ]);
  assert.deepEqual(
    warnings.map((line) => line.replace(/ has no effect: .+$/, '')),
    ['--wal-dir', '--max-wals', '--pre-vote', '--v'],
  );
  for (const flag of ['--discovery=http://x', '--discovery-srv=x', '--proxy=on', '--proxy=readonly']) {
    const { code, text } = await verdict([flag]);
    assert.equal(code, 1, flag);
    assert.match(text, new RegExp(`^${flag}: .+ is not offered; `));
  }
});

test('accepts the etcd command line of kubeadm without warnings', async () => {
  const pki = '/etc/kubernetes/pki/etcd';
  const { settings, warnings } = await parse([
    '--advertise-client-urls=https://192.168.1.5:2379',
    `--cert-file=${pki}/server.crt`,
    '--client-cert-auth=true',
    '--data-dir=/var/lib/etcd',
    '--experimental-initial-corrupt-check=true',
    '--experimental-watch-progress-notify-interval=5s',
    '--initial-advertise-peer-urls=https://192.168.1.5:2380',
    '--initial-cluster=master-1=https://192.168.1.5:2380',
    `--key-file=${pki}/server.key`,
    '--listen-client-urls=https://127.0.0.1:2379,https://192.168.1.5:2379',
    '--listen-metrics-urls=http://127.0.0.1:2381',
    '--listen-peer-urls=https://192.168.1.5:2380',
    '--name=master-1',
    `--peer-cert-file=${pki}/peer.crt`,
    '--peer-client-cert-auth=true',
    `--peer-key-file=${pki}/peer.key`,
    `--peer-trusted-ca-file=${pki}/ca.crt`,
    '--snapshot-count=10000',
    `--trusted-ca-file=${pki}/ca.crt`,
  ]);
  assert.deepEqual(warnings, []);
  assert.equal(settings.cluster.bootstrapProblem, undefined);
  assert.equal(settings.progressNotifyMs, 5000);
  assert.deepEqual(
    [settings.tls.peer.certFile, settings.tls.peer.clientCertFile, settings.tls.peer.requireCertificate],
    [`${pki}/peer.crt`, `${pki}/peer.crt`, true],
  );
});

test('accepts the command line of kubeadm for etcd 3.6 without warnings and applies its flags', async () => {
  const { settings, warnings } = await parse([
    '--feature-gates=InitialCorruptCheck=true',
    '--watch-progress-notify-interval=5s',
    '--corrupt-check-time=1h',
    '--warning-apply-duration=200ms',
    '--warning-unary-request-duration=400ms',
    '--max-learners=3',
  ]);
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    [settings.corruption, settings.progressNotifyMs, settings.slow, settings.cluster.maxLearners],
    [{ checkAtStart: true, intervalMs: 3_600_000 }, 5000, { applyMs: 200, requestMs: 400 }, 3],
  );
});

test('uses the value of the new name of a flag if the old name is also given', async () => {
  const { settings } = await parse([
    '--watch-progress-notify-interval=5s',
    '--experimental-watch-progress-notify-interval=7s',
    '--experimental-max-learners=2',
  ]);
  assert.deepEqual([settings.progressNotifyMs, settings.cluster.maxLearners], [5000, 2]);
});

test('accepts the feature gates of etcd 3.6, warns of those without effect, and rejects unknown ones', async () => {
  const { settings, warnings } = await parse(['--feature-gates=StopGRPCServiceOnDefrag=true, InitialCorruptCheck=F']);
  assert.equal(settings.corruption.checkAtStart, false);
  assert.deepEqual(warnings, [
    '--feature-gates: StopGRPCServiceOnDefrag has no effect: defragmentation does not block requests',
  ]);
  const refused = async (argv: readonly string[], message: RegExp): Promise<void> => {
    const { code, text } = await verdict(argv);
    assert.equal(code, 1);
    assert.match(text, message);
  };
  await refused(['--feature-gates=Frob=true'], /"Frob" is not a feature gate; use one of InitialCorruptCheck, /);
  await refused(['--feature-gates=constructor=true'], /"constructor" is not a feature gate/);
  for (const text of ['InitialCorruptCheck', 'InitialCorruptCheck=yes', 'InitialCorruptCheck=true=true'])
    await refused([`--feature-gates=${text}`], /write InitialCorruptCheck=true or InitialCorruptCheck=false/);
  await refused(
    ['--feature-gates=InitialCorruptCheck=true', '--experimental-initial-corrupt-check=true'],
    /InitialCorruptCheck and --experimental-initial-corrupt-check are both given; omit the flag/,
  );
  for (const most of [0, 17])
    await refused([`--max-learners=${most}`], /--max-learners is \d+; a cluster may have 1 to 16/);
  await refused(['--discovery-token=x'], /^--discovery-token=x: discovery is not offered/);
});

test('rejects etcd flags with inconsistent TLS settings', async () => {
  const refused = async (argv: readonly string[], message: RegExp): Promise<void> => {
    const { code, text } = await verdict(argv);
    assert.equal(code, 1);
    assert.match(text, message);
  };
  const url = (text: string): string[] => [`--listen-client-urls=${text}`, '--advertise-client-urls=http://a:1'];
  await refused(
    url('https://127.0.0.1:1'),
    /^https:\/\/127\.0\.0\.1:1 needs a certificate: give --cert-file and --key-file$/,
  );
  await refused(
    ['--listen-peer-urls=unixs:///x'],
    /^unixs:\/\/\/x needs a certificate: give --peer-cert-file and --peer-key-file$/,
  );
  await refused(['--cert-file=a'], /^--cert-file is given without --key-file; give both or neither$/);
  await refused(
    [...url('http://127.0.0.1:1'), '--listen-peer-urls=http://127.0.0.1:1'],
    /are the same address; give each of them a different port$/,
  );
  await refused(['--peer-cert-allowed-cn=a', '--peer-cert-allowed-hostname=b'], /exclude each other/);
  await refused(['--tls-min-version=TLS1.3', '--tls-max-version=TLS1.2'], /is above/);
  await refused(['--tls-min-version=TLS1.3', '--cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA'], /omit one of them/);
  await refused(
    ['--auto-compaction-mode=revision', '--auto-compaction-retention=5m'],
    /"5m" is not a number of revisions/,
  );
  const { warnings } = await parse([
    '--client-crl-file=x',
    '--cert-file=a',
    '--key-file=b',
    '--auto-tls',
    '--cipher-suites=TLS_RSA_WITH_RC4_128_SHA',
    '--bcrypt-cost=99',
  ]);
  assert.deepEqual(
    warnings.map((line) => line.split(':')[0]),
    [
      '--client-crl-file is not used',
      '--auto-tls is not used',
      'http',
      '--cipher-suites',
      '--bcrypt-cost must be from 4 to 31; 10 is used',
    ],
  );
});

test('fails with a usage error for every invalid etcd command line', async () => {
  const names = [...FLAGS.keys(), 'frob', '', '-', '__proto__'];
  const texts = [
    '',
    '0',
    '-1',
    'x',
    'true',
    'http://a:1',
    'http://[::1]:0',
    'a=http://a:1',
    'jwt,ttl',
    ',',
    '=',
    '9'.repeat(40),
    '1h',
    'unix://x',
    '\n',
  ];
  for (const name of names) {
    if (name === 'config-file') continue;
    for (const text of texts) {
      for (const argv of [[`--${name}=${text}`], [`-${name}`, text]]) {
        const plan = await planEtcd({ argv, environment: {}, own: undefined }).catch((error: unknown) => error);
        if (!(plan instanceof Error)) continue;
        assert.ok(plan instanceof EtcdUsageProblem, `${argv.join(' ')}: ${plan.stack}`);
        assert.match(plan.message, /^.{10,}$/s);
      }
    }
  }
});

test('parses numbers and durations of etcd flags as Go does', () => {
  for (const [text, value] of [
    ['0', 0n],
    ['10', 10n],
    ['010', 8n],
    ['0o10', 8n],
    ['0b11', 3n],
    ['0xfF', 255n],
    ['1_000', 1000n],
    ['-5', -5n],
  ] as const) {
    assert.equal(parseInteger(text), value, text);
  }
  for (const text of ['', ' 1', '1.5', '08', '1__0', '_1', '1e3', 'x'])
    assert.equal(parseInteger(text), undefined, text);
  for (const [text, ms] of [
    ['0', 0],
    ['1h2m3.5s', 3_723_500],
    ['.5s', 500],
    ['-1ms', -1],
    ['100us', 0.1],
    ['5m0s', 300_000],
  ] as const) {
    assert.equal(parseDuration(text), ms, text);
  }
  for (const text of ['', '5', 's', '1 s', '1d', '.s', '1h-2m']) assert.equal(parseDuration(text), undefined, text);
});

test('parses listen addresses and URLs of etcd flags', () => {
  for (const text of [
    'foo',
    'ftp://h:1',
    'http://h',
    'http://h:1/',
    'http://h:1?x',
    'http://:x',
    'http://[::1]',
    'http://::1:1',
    'unix://',
    'http://h:70000',
    'http://a:1,,',
  ]) {
    assert.ok('problem' in parseUrls(text), text);
  }
  const one = parseUrls(' HTTPS://[fe80::1]:1 , https://a:2,https://a:2');
  assert.ok(Array.isArray(one));
  assert.deepEqual(
    one.map(({ scheme, host, port }) => [scheme, host, port]),
    [
      ['https', 'fe80::1', 1],
      ['https', 'a', 2],
    ],
  );
});

test('docs/etcd-flags.md lists every etcd flag with its default', async () => {
  const page = await readText(new URL('../../../docs/etcd-flags.md', import.meta.url), 'utf8');
  for (const [name, { initial, kind }] of FLAGS) {
    const shown =
      kind === 'ignored' ? `\`--${name}\`` : `| \`--${name}\` | ${initial === '' ? '' : `\`${initial}\``} |`;
    assert.ok(page.includes(shown), shown);
  }
});

/**
 * No host has this address (TEST-NET-1): an etcd without any other error fails to listen on it, after all other checks.
 */
const NOWHERE = 'http://192.0.2.1:1';

describe("arguments compared with Debian's etcd", { concurrency: 4 }, () => {
  const debian = (argv: readonly string[], environment: Environment): Promise<{ code: number; text: string }> =>
    new Promise((resolve) => {
      const options = { cwd: directory, timeout: 10_000, env: { PATH: process.env['PATH'], ...environment } };
      execFile(DEBIAN_ETCD, [...argv], options, (error, stdout, stderr) => {
        const text = `${stdout}${stderr}`;
        const fine = text.includes('cannot assign requested address');
        resolve({ code: fine || error === null ? 0 : Number(error.code), text });
      });
    });

  let count = 0;
  const compare = async (
    argv: readonly string[],
    named: string | undefined,
    environment: Environment = {},
  ): Promise<void> => {
    if (!(await isInstalled(DEBIAN_ETCD))) throw new Error(`${DEBIAN_ETCD} is missing: install etcd-server`);
    count += 1;
    const has = (name: string): boolean => argv.some((each) => each.includes(name));
    const all = [
      ...(has('config-file')
        ? []
        : ['--data-dir', join(directory, `data-${count}`), '--listen-peer-urls=http://127.0.0.1:0']),
      ...(has('config-file') || has('listen-metrics-urls') ? [] : ['--listen-metrics-urls', NOWHERE]),
      ...(has('config-file') || has('listen-client-urls')
        ? []
        : ['--listen-client-urls=http://127.0.0.1:0', '--advertise-client-urls=http://127.0.0.1:2379']),
      ...argv,
    ];
    const [theirs, ours] = await Promise.all([debian(all, environment), verdict(all, environment)]);
    assert.equal(ours.code, theirs.code, `${ours.text}\n${theirs.text.slice(0, 2000)}`);
    if (named === undefined) assert.equal(ours.code, 0, ours.text);
    else {
      assert.match(ours.text, new RegExp(named));
      assert.match(theirs.text, new RegExp(named));
      assert.equal(ours.text.includes('\n'), false);
    }
  };

  const bad: readonly [readonly string[], string][] = [
    [['--frob'], '-frob'],
    [['--frob=1'], '-frob'],
    [['--name'], '-name'],
    [['---name'], '---name'],
    [['--=x'], '--=x'],
    [['extra'], 'extra'],
    [['--', 'extra'], 'extra'],
    [['--pre-vote', 'false'], 'false'],
    [['--heartbeat-interval=x'], '-heartbeat-interval'],
    [['--heartbeat-interval', '-1'], '-heartbeat-interval'],
    [['--pre-vote=maybe'], '-pre-vote'],
    [['--max-concurrent-streams=4294967296'], '-max-concurrent-streams'],
    [['--grpc-keepalive-interval=5'], '-grpc-keepalive-interval'],
    [['--listen-client-urls=foo'], '-listen-client-urls'],
    [['--listen-client-urls=ftp://localhost:1'], '-listen-client-urls'],
    [['--listen-client-urls=http://localhost'], '-listen-client-urls'],
    [['--listen-client-urls=http://localhost:1/x'], '-listen-client-urls'],
    [['--listen-metrics-urls=foo'], '-listen-metrics-urls'],
    [['--listen-metrics-urls=http://foo:1'], 'http://foo:1'],
    [['--listen-client-urls=http://127.0.0.1:1'], '--advertise-client-urls'],
    [['--listen-client-urls=http://foo.example:1', '--advertise-client-urls=http://foo.example:1'], 'foo.example'],
    [['--initial-advertise-peer-urls=http://:2380'], '--initial-advertise-peer-urls'],
    [['--initial-cluster-state=foo'], '-initial-cluster-state'],
    [['--initial-cluster=default'], 'initial.cluster'],
    [['--name=x', '--initial-cluster=y=http://localhost:2380'], '"?x"?'],
    [['--initial-cluster=default=http://localhost:2381'], '--initial-cluster'],
    [['--initial-cluster=default=http://localhost:2380,b=http://localhost:2380'], 'initial.cluster'],
    [['--election-timeout=100'], '--election-timeout'],
    [['--election-timeout=60000'], '--election-timeout'],
    [['--election-timeout=0'], '--election-timeout'],
    [['--heartbeat-interval=0'], '--heartbeat-interval'],
    [['--auto-compaction-mode=foo'], 'auto-compaction-mode'],
    [['--auto-compaction-retention=foo'], 'foo'],
    [['--logger=foo'], 'foo'],
    [['--log-level=foo'], 'foo'],
    [['--proxy=foo'], '-proxy'],
    [['--cipher-suites=foo'], 'foo'],
    [['--config-file=/nonexistent'], '/nonexistent'],
    [['--config-file'], '-config-file'],
  ];
  for (const [argv, named] of bad)
    it(`rejects the arguments "${argv.join(' ')}" as Debian's etcd does`, () => compare(argv, named));

  const good: readonly (readonly string[])[] = [
    [],
    ['-name', 'x'],
    ['--name=x', '--initial-cluster=default=http://localhost:2380'],
    ['--unsafe-no-fsync', '--pre-vote', '--heartbeat-interval=0x10', '--quota-backend-bytes=-1'],
    ['--initial-cluster=default=http://127.0.0.1:2380', '--initial-advertise-peer-urls=http://127.0.0.1:2380'],
    [
      '--name=a',
      '--initial-cluster=a=http://10.0.0.1:1,b=http://10.0.0.2:1',
      '--initial-advertise-peer-urls=http://10.0.0.1:1',
    ],
    [
      '--auto-compaction-retention=5m',
      '--auto-compaction-mode=periodic',
      '--log-level=error',
      '--logger=zap',
      '--log-outputs=stderr',
    ],
    [
      '--listen-client-urls=http://0.0.0.0:1',
      '--advertise-client-urls=http://foo.example:1',
      '--cluster-active-size=3',
      '-v',
    ],
    [
      '--cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
      '--host-whitelist=a',
      '--cors=http://a:1',
      '--bcrypt-cost=3',
    ],
  ];
  for (const argv of good)
    it(`accepts the arguments "${argv.join(' ')}" as Debian's etcd does`, () => compare(argv, undefined));

  it('accepts and rejects the same environment variables as etcd', async () => {
    await compare([], 'ETCD_HEARTBEAT_INTERVAL', { ETCD_HEARTBEAT_INTERVAL: 'x' });
    await compare([], 'ETCD_PRE_VOTE', { ETCD_PRE_VOTE: 'maybe' });
    await compare([], undefined, { ETCD_FROB: '1', ETCD_NAME: 'x', ETCD_PRE_VOTE: 'TRUE' });
    await compare(['--heartbeat-interval=10'], 'ETCD_HEARTBEAT_INTERVAL', { ETCD_HEARTBEAT_INTERVAL: 'x' });
  });

  it('accepts and rejects the same configuration files as etcd', async () => {
    const file = async (name: string, text: string): Promise<string> => {
      await writeFile(join(directory, name), text);
      return `--config-file=${join(directory, name)}`;
    };
    const fine = await file(
      'good.yaml',
      `name: a\nlisten-metrics-urls: ${NOWHERE}\nlisten-peer-urls: http://127.0.0.1:0\nlisten-client-urls: http://127.0.0.1:0\ndata-dir: ${join(directory, 'by-file')}\nwal-dir:\nheartbeat-interval: 10\n`,
    );
    await compare([fine, '--heartbeat-interval=0'], undefined, { ETCD_ELECTION_TIMEOUT: '1' });
    await compare([await file('slow.yaml', 'election-timeout: 60000\n')], 'election-timeout');
  });

  it("supports every flag of Debian's etcd", async () => {
    const { text } = await debian(['--help'], {});
    const names = [...text.matchAll(/^ {2}--([a-z0-9-]+) /gm)].map(([, name]) => name as string);
    assert.ok(names.length > 75, `${names.length} flags in its help`);
    assert.deepEqual(
      names.filter((name) => !FLAGS.has(name as never)),
      [],
    );
  });
});
