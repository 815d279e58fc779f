/**
 * Every flag of etcd 3.4, 3.5 and 3.6, and its effect here. Names, kinds and defaults are etcd's (`etcd --help`),
 * except for the default of `pre-vote`, which is always on.
 */

export type FlagKind =
  | 'string'
  | 'boolean'
  /** Go uint: 64 bits, unsigned. */
  | 'uint'
  | 'uint32'
  | 'int'
  /** Go duration: `5s`, `1h30m`. */
  | 'duration'
  | 'urls'
  /** Comma-separated. */
  | 'list'
  /** A flag of etcd before 3.0: accepted and ignored. */
  | 'ignored';

export interface EtcdFlag {
  readonly kind: FlagKind;
  /** The default, as text. */
  readonly initial: string;
  /** Description; for a flag without effect, the reason. */
  readonly help: string;
  /**
   * `used`; `void`: accepted with a warning, without effect; `refused`: any value except the default is an error,
   * because the function is not implemented.
   */
  readonly use: 'used' | 'void' | 'refused';
  readonly choices?: readonly string[];
  /** Values without effect that need no warning. */
  readonly harmless?: readonly string[];
}

const used = (kind: FlagKind, initial: string, help: string, choices?: readonly string[]): EtcdFlag => ({
  kind,
  initial,
  help,
  use: 'used',
  ...(choices === undefined ? {} : { choices }),
});
const unused = (kind: FlagKind, initial: string, help: string, harmless: readonly string[] = [initial]): EtcdFlag => ({
  kind,
  initial,
  help,
  use: 'void',
  harmless,
});
const refused = (kind: FlagKind, initial: string, help: string, choices?: readonly string[]): EtcdFlag => ({
  kind,
  initial,
  help,
  use: 'refused',
  ...(choices === undefined ? {} : { choices }),
});

const SQLITE = 'the store is SQLite';
const NO_V2 = 'the v2 API is not served';
const NO_DISCOVERY = 'discovery is not offered; name the members with --initial-cluster';
const NO_PROXY = 'the v2 proxy is not offered; leave the flag out, and run a TCP load balancer in front of the members';
const NO_TRACING = 'there is no tracing';
const ROTATE = 'have logrotate (with copytruncate) or systemd’s journal rotate the log';

const MEMBER = {
  name: used('string', 'default', 'this member’s name'),
  'data-dir': used('string', '', 'data directory; default: the name with .etcd'),
  'wal-dir': unused('string', '', 'the log stands beside the store in the data directory'),
  'snapshot-count': used('uint', '100000', 'entries that the raft log keeps for members that are behind'),
  'heartbeat-interval': used('uint', '100', 'milliseconds between heartbeats'),
  'election-timeout': used(
    'uint',
    '1000',
    'milliseconds without a leader before an election; at most 50000; when neither this nor the heartbeat interval is given, 500 to 5000, by what is measured',
  ),
  'initial-election-tick-advance': used('boolean', 'true', 'begin the first election sooner'),
  'listen-peer-urls': used('urls', 'http://localhost:2380', 'addresses for the other members'),
  'listen-client-urls': used('urls', 'http://localhost:2379', 'addresses for clients, gRPC and HTTP'),
  'listen-client-http-urls': used('urls', '', 'addresses for HTTP alone; --listen-client-urls then serve gRPC alone'),
  'max-snapshots': unused('uint', '5', 'there are no snapshot files: the store is one file'),
  'max-wals': unused('uint', '5', 'the log is one file of 4 MB, which is checkpointed into the store'),
  'quota-backend-bytes': used('int', '0', 'size of the store above which writes raise the NOSPACE alarm; 0: 2 GiB'),
  'backend-bbolt-freelist-type': unused('string', 'map', SQLITE),
  'experimental-backend-bbolt-freelist-type': unused('string', 'array', SQLITE),
  'backend-batch-interval': unused('duration', '0s', 'all that waits while the disk is busy is one commit'),
  'backend-batch-limit': unused('int', '0', 'all that waits while the disk is busy is one commit'),
  'max-txn-ops': used('uint', '128', 'operations in a transaction'),
  'max-request-bytes': used('uint', '1572864', 'size of a request'),
  'max-concurrent-streams': used(
    'uint32',
    '4294967295',
    'calls at once on a connection, 4096 at the most; fewer than that count for the JSON gateway as a whole too',
  ),
  'enable-grpc-gateway': used('boolean', 'true', 'JSON over HTTP, under /v3/'),
  'grpc-keepalive-min-time': unused('duration', '5s', 'clients may ping up to 200 times a second'),
  'grpc-keepalive-interval': used('duration', '2h', 'how often a silent client is pinged; 0: never'),
  'grpc-keepalive-timeout': used('duration', '20s', 'time that a pinged client has to answer'),
  'socket-reuse-port': used('boolean', 'false', 'listen with SO_REUSEPORT'),
  'socket-reuse-address': unused('boolean', 'false', 'SO_REUSEADDR is always set', ['true', 'false']),
  'raft-read-timeout': unused('duration', '5s', 'follows from the round-trip times'),
  'raft-write-timeout': unused('duration', '5s', 'follows from the round-trip times'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const CLUSTERING = {
  'initial-advertise-peer-urls': used('urls', 'http://localhost:2380', 'peer URLs advertised to the other members'),
  'initial-cluster': used('string', 'default=http://localhost:2380', 'first members: NAME=PEER-URL,…'),
  'initial-cluster-state': used('string', 'new', 'new: found a cluster; existing: join one', ['new', 'existing']),
  'initial-cluster-token': used('string', 'etcd-cluster', 'tells clusters with the same members apart'),
  'advertise-client-urls': used('urls', 'http://localhost:2379', 'client URLs advertised to clients'),
  discovery: refused('string', '', NO_DISCOVERY),
  'discovery-fallback': unused('string', 'proxy', 'there is no discovery', ['proxy', 'exit']),
  'discovery-proxy': unused('string', '', 'there is no discovery'),
  'discovery-srv': refused('string', '', NO_DISCOVERY),
  'discovery-srv-name': unused('string', '', 'there is no discovery'),
  'strict-reconfig-check': used('boolean', 'true', 'refuse membership changes that would cost the quorum'),
  'pre-vote': unused('boolean', 'true', 'always on'),
  'auto-compaction-retention': used('string', '0', 'history to keep: hours or a duration, or revisions; 0: all'),
  'auto-compaction-mode': used('string', 'periodic', 'periodic or revision'),
  'enable-v2': unused('boolean', 'false', NO_V2),
  'v2-deprecation': unused('string', 'not-yet', NO_V2, ['not-yet', 'write-only', 'write-only-drop-data', 'gone']),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const SECURITY = {
  'cert-file': used('string', '', 'certificate for clients'),
  'key-file': used('string', '', 'its key'),
  'client-cert-auth': used('boolean', 'false', 'clients need a certificate'),
  'client-cert-file': unused('string', '', 'the server does not call its own client port'),
  'client-key-file': unused('string', '', 'the server does not call its own client port'),
  'client-crl-file': used('string', '', 'revoked client certificates'),
  'client-cert-allowed-hostname': used('list', '', 'names of which a client certificate must bear one'),
  'trusted-ca-file': used('string', '', 'authorities of client certificates; clients then need one'),
  'auto-tls': used('boolean', 'false', 'make a certificate for clients below the data directory'),
  'peer-cert-file': used('string', '', 'certificate for the other members'),
  'peer-key-file': used('string', '', 'its key'),
  'peer-client-cert-auth': used('boolean', 'false', 'the other members need a certificate'),
  'peer-client-cert-file': used(
    'string',
    '',
    'certificate as a client of the other members; default: --peer-cert-file',
  ),
  'peer-client-key-file': used('string', '', 'its key; default: --peer-key-file'),
  'peer-trusted-ca-file': used('string', '', 'authorities of the other members’ certificates'),
  'peer-cert-allowed-cn': used('list', '', 'common names of which a peer certificate must bear one'),
  'peer-cert-allowed-hostname': used('list', '', 'names of which a peer certificate must bear one'),
  'peer-auto-tls': used('boolean', 'false', 'make a certificate for the other members below the data directory'),
  'peer-crl-file': used('string', '', 'revoked peer certificates'),
  'self-signed-cert-validity': used('uint', '1', 'years that certificates of --auto-tls are valid'),
  'cipher-suites': used('list', '', 'cipher suites of TLS 1.2, in Go’s names'),
  'tls-min-version': used('string', 'TLS1.2', 'minimum TLS version', ['', 'TLS1.2', 'TLS1.3']),
  'tls-max-version': used('string', '', 'maximum TLS version', ['', 'TLS1.2', 'TLS1.3']),
  cors: unused('string', '*', 'pages of other origins are not let in'),
  'host-whitelist': used('list', '*', 'accepted Host headers of plain HTTP; * or empty: any'),
  'experimental-peer-skip-client-san-verification': unused('boolean', 'false', 'peers are known by their authority', [
    'true',
    'false',
  ]),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const AUTH = {
  'auth-token': used(
    'string',
    'simple',
    'simple, or jwt with its options: jwt,pub-key=FILE,priv-key=FILE,sign-method=RS256',
  ),
  'bcrypt-cost': used('uint', '10', 'cost of password hashes, 4 to 31: scrypt with the same duration; above 20 as 20'),
  'auth-token-ttl': used('uint', '300', 'seconds that a simple token is valid'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const MONITORING = {
  'enable-pprof': unused('boolean', 'false', 'that is Go’s profiler'),
  metrics: used('string', 'basic', 'extensive: also how long calls take'),
  'listen-metrics-urls': used('urls', '', 'further addresses, for /metrics, /health, /livez and /readyz alone'),
  'experimental-enable-distributed-tracing': unused('boolean', 'false', NO_TRACING),
  'experimental-distributed-tracing-address': unused('string', 'localhost:4317', NO_TRACING),
  'experimental-distributed-tracing-service-name': unused('string', 'etcd', NO_TRACING),
  'experimental-distributed-tracing-instance-id': unused('string', '', NO_TRACING),
  'experimental-distributed-tracing-sampling-rate': unused('int', '0', NO_TRACING),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const LOGGING = {
  logger: used('string', 'zap', 'zap or capnslog: both log in hyperedge’s format'),
  'log-outputs': used('list', 'default', 'default and stderr, stdout, or files to append to'),
  'log-output': used('string', '', 'older name of --log-outputs'),
  'log-level': used('string', 'info', 'debug, info, warn, error, panic or fatal', [
    'debug',
    'info',
    'warn',
    'error',
    'dpanic',
    'panic',
    'fatal',
  ]),
  'log-format': unused('string', 'json', 'log lines have hyperedge’s format', ['json', 'console']),
  'enable-log-rotation': unused('boolean', 'false', ROTATE),
  'log-rotation-config-json': unused('string', '', ROTATE),
  debug: used('boolean', 'false', 'older form of --log-level=debug'),
  'log-package-levels': unused('string', '', 'log packages do not exist here; use --log-level'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const PROXY = {
  proxy: refused('string', 'off', NO_PROXY, ['off', 'readonly', 'on']),
  'proxy-failure-wait': unused('uint', '5000', 'there is no proxy'),
  'proxy-refresh-interval': unused('uint', '30000', 'there is no proxy'),
  'proxy-dial-timeout': unused('uint', '1000', 'there is no proxy'),
  'proxy-write-timeout': unused('uint', '5000', 'there is no proxy'),
  'proxy-read-timeout': unused('uint', '0', 'there is no proxy'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const EXPERIMENTAL = {
  'experimental-initial-corrupt-check': used('boolean', 'false', 'compare the store with the other members’ first'),
  'experimental-corrupt-check-time': used('duration', '0s', 'how often members compare their stores; 0: twice a day'),
  'experimental-compact-hash-check-enabled': unused('boolean', 'false', 'members compare their stores anyway', [
    'true',
    'false',
  ]),
  'experimental-compact-hash-check-time': unused('duration', '1m0s', 'members compare their stores anyway'),
  'experimental-enable-v2v3': unused('string', '', NO_V2),
  'experimental-enable-lease-checkpoint': unused('boolean', 'true', 'always on'),
  'experimental-enable-lease-checkpoint-persist': unused('boolean', 'true', 'always on'),
  'experimental-compaction-batch-limit': unused('int', '1000', 'compaction adapts its batch size'),
  'experimental-compaction-sleep-interval': unused('duration', '10ms', 'compaction adapts its batch size'),
  'experimental-watch-progress-notify-interval': used(
    'duration',
    '10m',
    'interval of progress notifications to watches that request them',
  ),
  'experimental-downgrade-check-time': unused('duration', '5s', 'there is no downgrade'),
  'experimental-memory-mlock': unused('boolean', 'false', 'memory is not locked; switch swap off'),
  'experimental-warning-apply-duration': used('duration', '100ms', 'slower writes are logged'),
  'experimental-warning-unary-request-duration': used('duration', '300ms', 'slower requests are logged'),
  'experimental-txn-mode-write-with-shared-buffer': unused('boolean', 'true', SQLITE, ['true', 'false']),
  'experimental-bootstrap-defrag-threshold-megabytes': unused('uint', '0', 'free pages are given back all the time'),
  'experimental-stop-grpc-service-on-defrag': unused('boolean', 'false', 'defragmentation does not block requests'),
  'experimental-max-learners': used('int', '1', 'learners that a cluster may have, 16 at most'),
  'experimental-wait-cluster-ready-timeout': unused(
    'duration',
    '5s',
    'clients are served as soon as there is a leader',
  ),
  'experimental-snapshot-catchup-entries': unused('uint', '5000', 'follows from --snapshot-count'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

/**
 * etcd 3.6's flag names, which take precedence over the former names. Boolean flags became feature gates: see
 * `feature-gates.ts`.
 */
const SINCE_3_6 = {
  'feature-gates': used(
    'string',
    '',
    'GATE=true or GATE=false, separated by commas; InitialCorruptCheck has a meaning',
  ),
  'corrupt-check-time': used('duration', '0s', 'how often members compare their stores; 0: twice a day'),
  'watch-progress-notify-interval': used(
    'duration',
    '10m',
    'interval of progress notifications to watches that request them',
  ),
  'warning-apply-duration': used('duration', '100ms', 'slower writes are logged'),
  'warning-unary-request-duration': used('duration', '300ms', 'slower requests are logged'),
  'max-learners': used('int', '1', 'learners that a cluster may have, 16 at most'),
  'compact-hash-check-time': unused('duration', '1m0s', 'members compare their stores anyway'),
  'compaction-batch-limit': unused('int', '1000', 'compaction adapts its batch size'),
  'compaction-sleep-interval': unused('duration', '10ms', 'compaction adapts its batch size'),
  'downgrade-check-time': unused('duration', '5s', 'there is no downgrade'),
  'memory-mlock': unused('boolean', 'false', 'memory is not locked; switch swap off'),
  'bootstrap-defrag-threshold-megabytes': unused('uint', '0', 'free pages are given back all the time'),
  'snapshot-catchup-entries': unused('uint', '5000', 'follows from --snapshot-count'),
  'peer-skip-client-san-verification': unused('boolean', 'false', 'peers are known by their authority', [
    'true',
    'false',
  ]),
  'enable-distributed-tracing': unused('boolean', 'false', NO_TRACING),
  'distributed-tracing-address': unused('string', 'localhost:4317', NO_TRACING),
  'distributed-tracing-service-name': unused('string', 'etcd', NO_TRACING),
  'distributed-tracing-instance-id': unused('string', '', NO_TRACING),
  'distributed-tracing-sampling-rate': unused('int', '0', NO_TRACING),
  'discovery-token': refused('string', '', NO_DISCOVERY),
  'discovery-endpoints': refused('string', '', NO_DISCOVERY),
  'discovery-dial-timeout': unused('duration', '2s', 'there is no discovery'),
  'discovery-request-timeout': unused('duration', '5s', 'there is no discovery'),
  'discovery-keepalive-time': unused('duration', '2s', 'there is no discovery'),
  'discovery-keepalive-timeout': unused('duration', '6s', 'there is no discovery'),
  'discovery-insecure-transport': unused('boolean', 'true', 'there is no discovery'),
  'discovery-insecure-skip-tls-verify': unused('boolean', 'false', 'there is no discovery'),
  'discovery-cert': unused('string', '', 'there is no discovery'),
  'discovery-key': unused('string', '', 'there is no discovery'),
  'discovery-cacert': unused('string', '', 'there is no discovery'),
  'discovery-user': unused('string', '', 'there is no discovery'),
  'discovery-password': unused('string', '', 'there is no discovery'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const UNSAFE = {
  'force-new-cluster': used('boolean', 'false', 'make a cluster of this member alone out of what it has'),
  'unsafe-no-fsync': used('boolean', 'false', 'never wait for the disk; a power cut may cost data'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const DEPRECATED = {
  'cluster-active-size': unused('ignored', '', 'of etcd 2'),
  'cluster-remove-delay': unused('ignored', '', 'of etcd 2'),
  'cluster-sync-interval': unused('ignored', '', 'of etcd 2'),
  config: unused('ignored', '', 'of etcd 2; the file is named with --config-file'),
  force: unused('ignored', '', 'of etcd 2'),
  'max-result-buffer': unused('ignored', '', 'of etcd 2'),
  'max-retry-attempts': unused('ignored', '', 'of etcd 2'),
  'peer-heartbeat-interval': unused('ignored', '', 'of etcd 2'),
  'peer-election-timeout': unused('ignored', '', 'of etcd 2'),
  'retry-interval': unused('ignored', '', 'of etcd 2'),
  snapshot: unused('ignored', '', 'of etcd 2'),
  v: unused('ignored', '', 'of etcd 2; use --log-level'),
  vv: unused('ignored', '', 'of etcd 2; use --log-level'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const PROGRAM = {
  'config-file': used('string', '', 'YAML configuration file; flags and environment are ignored with it'),
  version: used('boolean', 'false', 'show the version'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

/** Flags in the order of `--help`. */
export const SECTIONS = {
  Member: MEMBER,
  Clustering: CLUSTERING,
  Security: SECURITY,
  Auth: AUTH,
  'Profiling and monitoring': MONITORING,
  Logging: LOGGING,
  'v2 proxy': PROXY,
  Experimental: EXPERIMENTAL,
  'Since etcd 3.6': SINCE_3_6,
  Unsafe: UNSAFE,
  'No longer in etcd': DEPRECATED,
  Program: PROGRAM,
} as const;

const ALL = {
  ...MEMBER,
  ...CLUSTERING,
  ...SECURITY,
  ...AUTH,
  ...MONITORING,
  ...LOGGING,
  ...PROXY,
  ...EXPERIMENTAL,
  ...SINCE_3_6,
  ...UNSAFE,
  ...DEPRECATED,
  ...PROGRAM,
};

export type FlagName = keyof typeof ALL;

export const FLAGS: ReadonlyMap<FlagName, EtcdFlag> = new Map(Object.entries(ALL) as [FlagName, EtcdFlag][]);

export function flagNamed(name: string): { readonly name: FlagName; readonly flag: EtcdFlag } | undefined {
  const flag = FLAGS.get(name as FlagName);
  return flag === undefined ? undefined : { name: name as FlagName, flag };
}

/** The text of `--help`, without its first lines. */
export function flagHelp(): string {
  const mark = { used: '', void: 'without meaning here: ', refused: 'refused: ' } as const;
  return Object.entries(SECTIONS)
    .map(([title, flags]) => {
      const lines = Object.entries(flags as Readonly<Record<string, EtcdFlag>>).map(
        ([name, { initial, help, use }]) => `  --${name} '${initial}'\n    ${mark[use]}${help}\n`,
      );
      return `\n${title}:\n${lines.join('')}`;
    })
    .join('');
}
