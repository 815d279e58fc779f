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
const NO_PROXY = 'the v2 proxy is not offered; omit the flag, and use a TCP load balancer in front of the members';
const NO_TRACING = 'tracing is not supported';
const ROTATE = 'use logrotate with copytruncate, or the journal of systemd';

const MEMBER = {
  name: used('string', 'default', 'name of this member'),
  'data-dir': used('string', '', 'data directory; default: NAME.etcd'),
  'wal-dir': unused('string', '', 'the log is in the data directory'),
  'snapshot-count': used('uint', '100000', 'entries that the raft log keeps for members that are behind'),
  'heartbeat-interval': used('uint', '100', 'milliseconds between heartbeats'),
  'election-timeout': used(
    'uint',
    '1000',
    'milliseconds without a leader before an election, at most 50000; if neither this flag nor --heartbeat-interval is given, 500 to 5000, adapted to the round-trip times',
  ),
  'initial-election-tick-advance': used('boolean', 'true', 'start the first election sooner'),
  'listen-peer-urls': used('urls', 'http://localhost:2380', 'addresses for the other members'),
  'listen-client-urls': used('urls', 'http://localhost:2379', 'addresses for clients, gRPC and HTTP'),
  'listen-client-http-urls': used('urls', '', 'addresses for HTTP only; --listen-client-urls then serves gRPC only'),
  'max-snapshots': unused('uint', '5', 'the store is one file, without snapshot files'),
  'max-wals': unused('uint', '5', 'there is one log of 4 MB, which is moved into the store'),
  'quota-backend-bytes': used('int', '0', 'size of the store above which writes raise the NOSPACE alarm; 0: 2 GiB'),
  'backend-bbolt-freelist-type': unused('string', 'map', SQLITE),
  'experimental-backend-bbolt-freelist-type': unused('string', 'array', SQLITE),
  'backend-batch-interval': unused('duration', '0s', 'writes that wait for the disk are committed together'),
  'backend-batch-limit': unused('int', '0', 'writes that wait for the disk are committed together'),
  'max-txn-ops': used('uint', '128', 'maximum number of operations in a transaction'),
  'max-request-bytes': used('uint', '1572864', 'maximum size of a request in bytes'),
  'max-concurrent-streams': used(
    'uint32',
    '4294967295',
    'concurrent calls on a connection, at most 4096; also limits the JSON gateway',
  ),
  'enable-grpc-gateway': used('boolean', 'true', 'serve JSON over HTTP below /v3/'),
  'grpc-keepalive-min-time': unused('duration', '5s', 'clients may ping up to 200 times a second'),
  'grpc-keepalive-interval': used('duration', '2h', 'interval of pings to an idle client; 0: never'),
  'grpc-keepalive-timeout': used('duration', '20s', 'time in which a client must respond to a ping'),
  'socket-reuse-port': used('boolean', 'false', 'listen with SO_REUSEPORT'),
  'socket-reuse-address': unused('boolean', 'false', 'SO_REUSEADDR is always set', ['true', 'false']),
  'raft-read-timeout': unused('duration', '5s', 'derived from the round-trip times'),
  'raft-write-timeout': unused('duration', '5s', 'derived from the round-trip times'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const CLUSTERING = {
  'initial-advertise-peer-urls': used('urls', 'http://localhost:2380', 'peer URLs announced to the other members'),
  'initial-cluster': used('string', 'default=http://localhost:2380', 'first members: NAME=PEER-URL,…'),
  'initial-cluster-state': used('string', 'new', 'new: form a cluster; existing: join a cluster', ['new', 'existing']),
  'initial-cluster-token': used('string', 'etcd-cluster', 'distinguishes clusters with the same members'),
  'advertise-client-urls': used('urls', 'http://localhost:2379', 'client URLs announced in the cluster'),
  discovery: refused('string', '', NO_DISCOVERY),
  'discovery-fallback': unused('string', 'proxy', 'discovery is not offered', ['proxy', 'exit']),
  'discovery-proxy': unused('string', '', 'discovery is not offered'),
  'discovery-srv': refused('string', '', NO_DISCOVERY),
  'discovery-srv-name': unused('string', '', 'discovery is not offered'),
  'strict-reconfig-check': used('boolean', 'true', 'reject membership changes that would lose the quorum'),
  'pre-vote': unused('boolean', 'true', 'pre-vote is always enabled'),
  'auto-compaction-retention': used(
    'string',
    '0',
    'history to keep: hours, a duration, or a number of revisions; 0: all',
  ),
  'auto-compaction-mode': used(
    'string',
    'periodic',
    'periodic (hours or a duration) or revision (a number of revisions)',
  ),
  'enable-v2': unused('boolean', 'false', NO_V2),
  'v2-deprecation': unused('string', 'not-yet', NO_V2, ['not-yet', 'write-only', 'write-only-drop-data', 'gone']),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const SECURITY = {
  'cert-file': used('string', '', 'certificate for clients'),
  'key-file': used('string', '', 'key of --cert-file'),
  'client-cert-auth': used('boolean', 'false', 'require a client certificate'),
  'client-cert-file': unused('string', '', 'the server is not a client of its own port'),
  'client-key-file': unused('string', '', 'the server is not a client of its own port'),
  'client-crl-file': used('string', '', 'revoked client certificates'),
  'client-cert-allowed-hostname': used('list', '', 'a client certificate must contain one of these names'),
  'trusted-ca-file': used('string', '', 'authorities of client certificates; a client certificate is then required'),
  'auto-tls': used('boolean', 'false', 'create a certificate for clients in the data directory'),
  'peer-cert-file': used('string', '', 'certificate for the other members'),
  'peer-key-file': used('string', '', 'key of --peer-cert-file'),
  'peer-client-cert-auth': used('boolean', 'false', 'require a client certificate from the other members'),
  'peer-client-cert-file': used(
    'string',
    '',
    'certificate as a client of the other members; default: --peer-cert-file',
  ),
  'peer-client-key-file': used('string', '', 'key of --peer-client-cert-file; default: --peer-key-file'),
  'peer-trusted-ca-file': used('string', '', 'authorities of the certificates of other members'),
  'peer-cert-allowed-cn': used('list', '', 'a peer certificate must have one of these common names'),
  'peer-cert-allowed-hostname': used('list', '', 'a peer certificate must contain one of these names'),
  'peer-auto-tls': used('boolean', 'false', 'create a certificate for the other members in the data directory'),
  'peer-crl-file': used('string', '', 'revoked peer certificates'),
  'self-signed-cert-validity': used('uint', '1', 'years that certificates of --auto-tls are valid'),
  'cipher-suites': used('list', '', 'cipher suites of TLS 1.2, with the names of Go'),
  'tls-min-version': used('string', 'TLS1.2', 'minimum TLS version', ['', 'TLS1.2', 'TLS1.3']),
  'tls-max-version': used('string', '', 'maximum TLS version', ['', 'TLS1.2', 'TLS1.3']),
  cors: unused('string', '*', 'pages of other origins are rejected'),
  'host-whitelist': used('list', '*', 'accepted Host headers of HTTP requests without TLS; * or empty: any'),
  'experimental-peer-skip-client-san-verification': unused(
    'boolean',
    'false',
    'peers are identified by their authority',
    ['true', 'false'],
  ),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const AUTH = {
  'auth-token': used(
    'string',
    'simple',
    'simple, or jwt with its options: jwt,pub-key=FILE,priv-key=FILE,sign-method=RS256',
  ),
  'bcrypt-cost': used('uint', '10', 'cost of password hashes, 4 to 31; above 20 as 20; scrypt with an equal run time'),
  'auth-token-ttl': used('uint', '300', 'seconds that a simple token is valid'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const MONITORING = {
  'enable-pprof': unused('boolean', 'false', 'the profiler is specific to Go'),
  metrics: used('string', 'basic', 'basic, or extensive: adds the durations of calls'),
  'listen-metrics-urls': used('urls', '', 'additional addresses that serve only /metrics, /health, /livez and /readyz'),
  'experimental-enable-distributed-tracing': unused('boolean', 'false', NO_TRACING),
  'experimental-distributed-tracing-address': unused('string', 'localhost:4317', NO_TRACING),
  'experimental-distributed-tracing-service-name': unused('string', 'etcd', NO_TRACING),
  'experimental-distributed-tracing-instance-id': unused('string', '', NO_TRACING),
  'experimental-distributed-tracing-sampling-rate': unused('int', '0', NO_TRACING),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const LOGGING = {
  logger: used('string', 'zap', 'zap or capnslog; log lines have the format of hyperedge in both cases'),
  'log-outputs': used('list', 'default', 'default, stderr, stdout or files, to which lines are appended'),
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
  'log-format': unused('string', 'json', 'log lines have the format of hyperedge', ['json', 'console']),
  'enable-log-rotation': unused('boolean', 'false', ROTATE),
  'log-rotation-config-json': unused('string', '', ROTATE),
  debug: used('boolean', 'false', 'older name of --log-level=debug'),
  'log-package-levels': unused('string', '', 'log levels of packages are not supported; use --log-level'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const PROXY = {
  proxy: refused('string', 'off', NO_PROXY, ['off', 'readonly', 'on']),
  'proxy-failure-wait': unused('uint', '5000', 'the v2 proxy is not offered'),
  'proxy-refresh-interval': unused('uint', '30000', 'the v2 proxy is not offered'),
  'proxy-dial-timeout': unused('uint', '1000', 'the v2 proxy is not offered'),
  'proxy-write-timeout': unused('uint', '5000', 'the v2 proxy is not offered'),
  'proxy-read-timeout': unused('uint', '0', 'the v2 proxy is not offered'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const EXPERIMENTAL = {
  'experimental-initial-corrupt-check': used(
    'boolean',
    'false',
    'compare the store with that of the other members at start',
  ),
  'experimental-corrupt-check-time': used('duration', '0s', 'how often members compare their stores; 0: twice a day'),
  'experimental-compact-hash-check-enabled': unused('boolean', 'false', 'members always compare their stores', [
    'true',
    'false',
  ]),
  'experimental-compact-hash-check-time': unused('duration', '1m0s', 'members always compare their stores'),
  'experimental-enable-v2v3': unused('string', '', NO_V2),
  'experimental-enable-lease-checkpoint': unused('boolean', 'true', 'lease checkpoints are always enabled'),
  'experimental-enable-lease-checkpoint-persist': unused('boolean', 'true', 'lease checkpoints are always enabled'),
  'experimental-compaction-batch-limit': unused('int', '1000', 'compaction selects its own step size'),
  'experimental-compaction-sleep-interval': unused('duration', '10ms', 'compaction selects its own step size'),
  'experimental-watch-progress-notify-interval': used(
    'duration',
    '10m',
    'interval of progress notifications of watches',
  ),
  'experimental-downgrade-check-time': unused('duration', '5s', 'downgrades are not supported'),
  'experimental-memory-mlock': unused('boolean', 'false', 'memory is not locked; disable swap'),
  'experimental-warning-apply-duration': used('duration', '100ms', 'writes that take longer are logged'),
  'experimental-warning-unary-request-duration': used('duration', '300ms', 'requests that take longer are logged'),
  'experimental-txn-mode-write-with-shared-buffer': unused('boolean', 'true', SQLITE, ['true', 'false']),
  'experimental-bootstrap-defrag-threshold-megabytes': unused('uint', '0', 'free pages are released continuously'),
  'experimental-stop-grpc-service-on-defrag': unused('boolean', 'false', 'defragmentation does not stop requests'),
  'experimental-max-learners': used('int', '1', 'maximum number of learners of a cluster, up to 16'),
  'experimental-wait-cluster-ready-timeout': unused('duration', '5s', 'clients are served when a leader is elected'),
  'experimental-snapshot-catchup-entries': unused('uint', '5000', 'derived from --snapshot-count'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

/**
 * etcd 3.6's flag names, which take precedence over the former names. Boolean flags became feature gates: see
 * `feature-gates.ts`.
 */
const SINCE_3_6 = {
  'feature-gates': used(
    'string',
    '',
    'GATE=true or GATE=false, separated by commas; only InitialCorruptCheck has an effect',
  ),
  'corrupt-check-time': used('duration', '0s', 'how often members compare their stores; 0: twice a day'),
  'watch-progress-notify-interval': used('duration', '10m', 'interval of progress notifications of watches'),
  'warning-apply-duration': used('duration', '100ms', 'writes that take longer are logged'),
  'warning-unary-request-duration': used('duration', '300ms', 'requests that take longer are logged'),
  'max-learners': used('int', '1', 'maximum number of learners of a cluster, up to 16'),
  'compact-hash-check-time': unused('duration', '1m0s', 'members always compare their stores'),
  'compaction-batch-limit': unused('int', '1000', 'compaction selects its own step size'),
  'compaction-sleep-interval': unused('duration', '10ms', 'compaction selects its own step size'),
  'downgrade-check-time': unused('duration', '5s', 'downgrades are not supported'),
  'memory-mlock': unused('boolean', 'false', 'memory is not locked; disable swap'),
  'bootstrap-defrag-threshold-megabytes': unused('uint', '0', 'free pages are released continuously'),
  'snapshot-catchup-entries': unused('uint', '5000', 'derived from --snapshot-count'),
  'peer-skip-client-san-verification': unused('boolean', 'false', 'peers are identified by their authority', [
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
  'discovery-dial-timeout': unused('duration', '2s', 'discovery is not offered'),
  'discovery-request-timeout': unused('duration', '5s', 'discovery is not offered'),
  'discovery-keepalive-time': unused('duration', '2s', 'discovery is not offered'),
  'discovery-keepalive-timeout': unused('duration', '6s', 'discovery is not offered'),
  'discovery-insecure-transport': unused('boolean', 'true', 'discovery is not offered'),
  'discovery-insecure-skip-tls-verify': unused('boolean', 'false', 'discovery is not offered'),
  'discovery-cert': unused('string', '', 'discovery is not offered'),
  'discovery-key': unused('string', '', 'discovery is not offered'),
  'discovery-cacert': unused('string', '', 'discovery is not offered'),
  'discovery-user': unused('string', '', 'discovery is not offered'),
  'discovery-password': unused('string', '', 'discovery is not offered'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const UNSAFE = {
  'force-new-cluster': used('boolean', 'false', 'create a cluster of one member from the data of this member'),
  'unsafe-no-fsync': used('boolean', 'false', 'do not wait for the disk; a power cut can lose data'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const DEPRECATED = {
  'cluster-active-size': unused('ignored', '', 'a flag of etcd 2'),
  'cluster-remove-delay': unused('ignored', '', 'a flag of etcd 2'),
  'cluster-sync-interval': unused('ignored', '', 'a flag of etcd 2'),
  config: unused('ignored', '', 'a flag of etcd 2; use --config-file'),
  force: unused('ignored', '', 'a flag of etcd 2'),
  'max-result-buffer': unused('ignored', '', 'a flag of etcd 2'),
  'max-retry-attempts': unused('ignored', '', 'a flag of etcd 2'),
  'peer-heartbeat-interval': unused('ignored', '', 'a flag of etcd 2'),
  'peer-election-timeout': unused('ignored', '', 'a flag of etcd 2'),
  'retry-interval': unused('ignored', '', 'a flag of etcd 2'),
  snapshot: unused('ignored', '', 'a flag of etcd 2'),
  v: unused('ignored', '', 'a flag of etcd 2; use --log-level'),
  vv: unused('ignored', '', 'a flag of etcd 2; use --log-level'),
} as const satisfies Readonly<Record<string, EtcdFlag>>;

const PROGRAM = {
  'config-file': used('string', '', 'YAML file with all settings; flags and environment variables are then ignored'),
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
  const mark = { used: '', void: 'no effect: ', refused: 'refused: ' } as const;
  return Object.entries(SECTIONS)
    .map(([title, flags]) => {
      const lines = Object.entries(flags as Readonly<Record<string, EtcdFlag>>).map(
        ([name, { initial, help, use }]) => `  --${name} '${initial}'\n    ${mark[use]}${help}\n`,
      );
      return `\n${title}:\n${lines.join('')}`;
    })
    .join('');
}
