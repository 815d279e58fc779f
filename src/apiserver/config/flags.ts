/**
 * Every flag of kube-apiserver since 1.20, and its effect here. Names, kinds and defaults are upstream's (`--help` of
 * kube-apiserver).
 */

type FlagKind =
  | 'string'
  | 'boolean'
  | 'int'
  | 'float'
  /** Go duration: `5s`, `1h30m`. */
  | 'duration'
  /** Comma-separated list. The flag may be given several times. */
  | 'list'
  /** List with one value per flag. The flag may be given several times; a comma is part of the value. */
  | 'repeated';

export interface ApiFlag {
  readonly kind: FlagKind;
  /** The default, as text. */
  readonly initial: string;
  /** Description of the flag. For a flag without effect, the reason why it has no effect. */
  readonly help: string;
  /**
   * `used`: the flag has an effect. `void`: the flag is accepted with a warning, without effect. `refused`: any value
   * except the default is an error, because the function is not implemented.
   */
  readonly use: 'used' | 'void' | 'refused';
  readonly choices?: readonly string[];
}

const flag =
  (use: ApiFlag['use']) =>
  (kind: FlagKind, initial: string, help: string, choices?: readonly string[]): ApiFlag => ({
    kind,
    initial,
    help,
    use,
    ...(choices === undefined ? {} : { choices }),
  });
const used = flag('used');
const unused = flag('void');
const refused = flag('refused');

const SERVING = {
  'advertise-address': used('string', '', 'address at which clients in the cluster reach this server'),
  'bind-address': used('string', '0.0.0.0', 'address to listen on'),
  'secure-port': used('int', '6443', 'port to listen on'),
  'cert-dir': used('string', '/var/run/kubernetes', 'directory in which a certificate is created when none is given'),
  'tls-cert-file': used('string', '', 'certificate of the server, with its intermediates'),
  'tls-private-key-file': used('string', '', 'key of --tls-cert-file'),
  'tls-min-version': used('string', '', 'minimum TLS version', ['', 'VersionTLS12', 'VersionTLS13']),
  'tls-cipher-suites': used('list', '', 'cipher suites of TLS 1.2, with the names of Go; default: the secure ones'),
  'tls-curve-preferences': used(
    'list',
    '',
    'key exchange groups: 23, 24, 25 (P-256, 384, 521), 29 (X25519), 4588 (X25519MLKEM768)',
  ),
  'tls-sni-cert-key': used(
    'repeated',
    '',
    'CERT,KEY or CERT,KEY:NAME,NAME: a certificate and the SNI names that use it',
  ),
  'external-hostname': used('string', '', 'host of the default URL of the service account keys'),
  'request-timeout': used(
    'duration',
    '1m0s',
    'time limit of a request, except watches and other long-running requests',
  ),
  'min-request-timeout': used(
    'int',
    '1800',
    'seconds after which watches end; the server selects a value up to twice as high for each watch',
  ),
  'max-requests-inflight': used('int', '400', 'maximum number of concurrent read requests'),
  'max-mutating-requests-inflight': used('int', '200', 'maximum number of concurrent write requests'),
  'permit-address-sharing': unused('boolean', 'false', 'addresses are always reused immediately'),
  'permit-port-sharing': used('boolean', 'false', 'allow other processes to listen on the same port'),
  'http2-max-streams-per-connection': used('int', '0', 'maximum number of concurrent requests of a connection; 0: 250'),
  'disable-http2-serving': used('boolean', 'false', 'serve only HTTP/1.1'),
  'goaway-chance': used('float', '0', 'probability that a request closes its HTTP/2 connection with GOAWAY, 0 to 0.02'),
  'strict-transport-security-directives': used(
    'list',
    '',
    'Strict-Transport-Security directives: max-age=SECONDS, includeSubDomains, preload',
  ),
  'cors-allowed-origins': used('list', '', 'patterns of origins allowed by CORS'),
  'shutdown-delay-duration': used(
    'duration',
    '0s',
    'time between the failure of /readyz and the end of serving at shutdown',
  ),
  'shutdown-send-retry-after': unused('boolean', 'false', 'new connections are refused immediately at shutdown'),
  'shutdown-watch-termination-grace-period': unused('duration', '0s', 'watches end immediately at shutdown'),
  'livez-grace-period': unused('duration', '0s', '/livez reports the state immediately after the start'),
  'max-connection-bytes-per-sec': unused('int', '0', 'the rate of a connection is not limited'),
} as const;

const STORE = {
  'etcd-servers': used('list', '', 'URLs of the etcd servers'),
  'etcd-cafile': used('string', '', 'authority of the certificates of the etcd servers'),
  'etcd-certfile': used('string', '', 'client certificate for etcd'),
  'etcd-keyfile': used('string', '', 'key of --etcd-certfile'),
  'etcd-prefix': refused('string', '/registry', 'objects are always stored below /registry'),
  'etcd-servers-overrides': refused('list', '', 'all resources are in one store'),
  'etcd-compaction-interval': used('duration', '5m0s', 'interval at which the history is compacted'),
  'etcd-count-metric-poll-period': unused('duration', '1m0s', 'objects are counted in memory'),
  'etcd-db-metric-poll-interval': unused('duration', '30s', 'the store serves its own metrics'),
  'etcd-healthcheck-timeout': unused('duration', '2s', 'the time limit is always 2 s'),
  'etcd-readycheck-timeout': unused('duration', '2s', 'the time limit is always 2 s'),
  'storage-backend': used('string', '', 'etcd3', ['', 'etcd3']),
  'storage-media-type': unused(
    'string',
    'application/vnd.kubernetes.protobuf',
    'objects are stored as JSON, which upstream API servers can read',
  ),
  'storage-initialization-timeout': unused('duration', '1m0s', 'the server waits until the store is available'),
  'encryption-provider-config': used(
    'string',
    '',
    'EncryptionConfiguration file: resources that are encrypted in the store, and their keys',
  ),
  'encryption-provider-config-automatic-reload': used('boolean', 'false', 'reload the file when it changes'),
  'watch-cache': unused('boolean', 'true', 'all lists and watches are served from the watch cache'),
  'watch-cache-sizes': unused('list', '', 'the watch cache contains all objects'),
  'default-watch-cache-size': unused('int', '100', 'the watch cache contains all objects'),
  'delete-collection-workers': unused('int', '1', 'the server selects the number of workers'),
  'enable-garbage-collector': refused('boolean', 'true', 'owner references are always processed'),
  'event-ttl': used('duration', '1h0m0s', 'time after which events are deleted'),
  'lease-reuse-duration-seconds': unused('int', '60', 'the duration is always 60 s'),
} as const;

const AUTHENTICATION = {
  'anonymous-auth': used('boolean', 'true', 'accept requests without credentials as user system:anonymous'),
  'client-ca-file': used('string', '', 'authorities of client certificates'),
  'token-auth-file': used('string', '', 'file of static tokens, one per line: token,user,uid,"groups"'),
  'enable-bootstrap-token-auth': used(
    'boolean',
    'false',
    'accept the tokens in secrets of type bootstrap.kubernetes.io/token',
  ),
  'authentication-config': used('string', '', 'AuthenticationConfiguration file: JWT issuers and anonymous requests'),
  'authentication-token-webhook-config-file': used('string', '', 'kubeconfig of the token review webhook'),
  'authentication-token-webhook-cache-ttl': used(
    'duration',
    '2m0s',
    'time for which answers of the token review webhook are cached',
  ),
  'authentication-token-webhook-version': used(
    'string',
    'v1',
    'API version of authentication.k8s.io in requests to the webhook',
    ['v1', 'v1beta1'],
  ),
  'api-audiences': used('list', '', 'audiences that tokens must have; default: the issuer'),
  'oidc-issuer-url': used('string', '', 'https:// URL of the issuer of ID tokens'),
  'oidc-client-id': used('string', '', 'audience that ID tokens must have'),
  'oidc-username-claim': used('string', 'sub', 'claim with the user name'),
  'oidc-username-prefix': used('string', '', 'prefix of user names; "-": no prefix'),
  'oidc-groups-claim': used('string', '', 'claim with the groups'),
  'oidc-groups-prefix': used('string', '', 'prefix of group names'),
  'oidc-required-claim': used('repeated', '', 'KEY=VALUE that an ID token must contain'),
  'oidc-signing-algs': used('list', 'RS256', 'accepted signature algorithms'),
  'oidc-ca-file': used('string', '', 'authority of the certificate of the issuer'),
  'requestheader-client-ca-file': used('string', '', 'authority of the client certificates of front proxies'),
  'requestheader-allowed-names': used('list', '', 'common names of front proxies; empty: any'),
  'requestheader-username-headers': used('list', 'X-Remote-User', 'headers with the user name'),
  'requestheader-group-headers': used('list', 'X-Remote-Group', 'headers with the groups'),
  'requestheader-extra-headers-prefix': used(
    'list',
    'X-Remote-Extra-',
    'prefixes of headers with extra fields of the user',
  ),
  'requestheader-uid-headers': used('list', '', 'headers with the UID of the user'),
  'service-account-issuer': used(
    'repeated',
    '',
    'issuer of service account tokens; the first one issues, and all are accepted',
  ),
  'service-account-jwks-uri': used('string', '', 'URL of the service account keys in the discovery document'),
  'service-account-key-file': used('repeated', '', 'keys that verify service account tokens'),
  'service-account-signing-key-file': used('string', '', 'key that signs service account tokens'),
  'service-account-signing-endpoint': refused(
    'string',
    '',
    'external signers are not supported; give --service-account-signing-key-file',
  ),
  'service-account-lookup': refused('boolean', 'true', 'tokens of deleted service accounts are always rejected'),
  'service-account-extend-token-expiration': used(
    'boolean',
    'true',
    'extend the tokens of pods to a year, with a warning when they are used after an hour',
  ),
  'service-account-max-token-expiration': used(
    'duration',
    '0s',
    'maximum lifetime of a service account token; 0: no limit',
  ),
} as const;

const AUTHORIZATION = {
  'authorization-mode': used('list', 'AlwaysAllow', 'ordered list of Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny'),
  'authorization-config': used('string', '', 'AuthorizationConfiguration file, reloaded when it changes'),
  'authorization-policy-file': refused('string', '', 'ABAC is not supported; use RBAC'),
  'authorization-webhook-config-file': used('string', '', 'kubeconfig of the authorization webhook'),
  'authorization-webhook-cache-authorized-ttl': used('duration', '5m0s', 'time for which allowed requests are cached'),
  'authorization-webhook-cache-unauthorized-ttl': used('duration', '30s', 'time for which denied requests are cached'),
  'authorization-webhook-version': used(
    'string',
    'v1',
    'API version of authorization.k8s.io in requests to the webhook',
    ['v1', 'v1beta1'],
  ),
} as const;

const AUDIT = {
  'audit-policy-file': used('string', '', 'Policy file: requests that are recorded, and their level'),
  'audit-log-path': used('string', '', 'file of audit events as JSON lines; "-": standard output'),
  'audit-log-format': used('string', 'json', 'json', ['json']),
  'audit-log-version': used('string', 'audit.k8s.io/v1', 'audit.k8s.io/v1', ['audit.k8s.io/v1']),
  'audit-log-mode': used(
    'string',
    'blocking',
    'batch: responses do not wait for the log; blocking: a response waits until its event is written; blocking-strict: in addition, a request fails if its first event cannot be written',
    ['batch', 'blocking', 'blocking-strict'],
  ),
  'audit-log-maxage': used('int', '366', 'days for which old files are kept; 0: no limit'),
  'audit-log-maxbackup': used('int', '100', 'number of old files that are kept; 0: no limit'),
  'audit-log-maxsize': used('int', '100', 'size in megabytes at which a file is rotated; 0: never'),
  'audit-log-compress': used('boolean', 'false', 'compress old files (gzip)'),
  'audit-log-batch-buffer-size': used('int', '10000', 'maximum number of events that wait'),
  'audit-log-batch-max-size': used('int', '1', 'maximum number of events in a batch'),
  'audit-log-batch-max-wait': used('duration', '0s', 'maximum time that an event waits for a batch'),
  'audit-log-batch-throttle-burst': used('int', '0', 'maximum number of batches at once after a pause'),
  'audit-log-batch-throttle-enable': used('boolean', 'false', 'limit the rate of batches'),
  'audit-log-batch-throttle-qps': used('float', '0', 'maximum number of batches per second'),
  'audit-log-truncate-enabled': used(
    'boolean',
    'false',
    'omit request and response bodies from events that are too large',
  ),
  'audit-log-truncate-max-batch-size': used('int', '10485760', 'events are written one by one'),
  'audit-log-truncate-max-event-size': used(
    'int',
    '102400',
    'maximum size of an event in bytes; larger events are written without bodies, or dropped if they are still too large',
  ),
  'audit-webhook-config-file': used('string', '', 'kubeconfig of the webhook that receives audit events'),
  'audit-webhook-version': used('string', 'audit.k8s.io/v1', 'audit.k8s.io/v1', ['audit.k8s.io/v1']),
  'audit-webhook-mode': used(
    'string',
    'batch',
    'batch: responses do not wait for the webhook; blocking: a response waits until its event is delivered; blocking-strict: in addition, a request fails if its first event cannot be delivered',
    ['batch', 'blocking', 'blocking-strict'],
  ),
  'audit-webhook-initial-backoff': used('duration', '10s', 'time before a failed batch is sent again'),
  'audit-webhook-batch-buffer-size': used('int', '10000', 'maximum number of events that wait'),
  'audit-webhook-batch-max-size': used('int', '400', 'maximum number of events in a batch'),
  'audit-webhook-batch-max-wait': used('duration', '30s', 'maximum time that an event waits for a batch'),
  'audit-webhook-batch-throttle-burst': used('int', '15', 'maximum number of batches at once after a pause'),
  'audit-webhook-batch-throttle-enable': used('boolean', 'true', 'limit the rate of batches'),
  'audit-webhook-batch-throttle-qps': used('float', '10', 'maximum number of batches per second'),
  'audit-webhook-truncate-enabled': used(
    'boolean',
    'false',
    'omit request and response bodies from events that are too large',
  ),
  'audit-webhook-truncate-max-batch-size': used(
    'int',
    '10485760',
    'maximum size of a batch in bytes; the remaining events are sent in the next batch',
  ),
  'audit-webhook-truncate-max-event-size': used(
    'int',
    '102400',
    'maximum size of an event in bytes; larger events are sent without bodies, or dropped if they are still too large',
  ),
} as const;

const ADMISSION = {
  'enable-admission-plugins': used('list', '', 'admission plug-ins in addition to the default ones'),
  'disable-admission-plugins': used('list', '', 'admission plug-ins that are disabled'),
  'admission-control-config-file': used(
    'string',
    '',
    'AdmissionConfiguration file: configuration of admission plug-ins',
  ),
  'default-not-ready-toleration-seconds': used('int', '300', 'seconds that pods stay on a node that is not ready'),
  'default-unreachable-toleration-seconds': used('int', '300', 'seconds that pods stay on a node that is unreachable'),
} as const;

const CLUSTER = {
  'service-cluster-ip-range': used('string', '10.0.0.0/24', 'address range of services'),
  'service-node-port-range': used('string', '30000-32767', 'port range of NodePort services'),
  'kubernetes-service-node-port': unused('int', '0', 'the service kubernetes has only a cluster IP'),
  'allow-privileged': used('boolean', 'false', 'privileged containers are always allowed'),
  'apiserver-count': unused('int', '1', 'API servers discover each other through the store'),
  'endpoint-reconciler-type': unused('string', 'lease', 'API servers discover each other through the store'),
  'kubelet-client-certificate': used('string', '', 'client certificate for requests to kubelets'),
  'kubelet-client-key': used('string', '', 'key of --kubelet-client-certificate'),
  'kubelet-certificate-authority': used('string', '', 'authority of the serving certificates of kubelets'),
  'kubelet-preferred-address-types': unused(
    'list',
    'Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP',
    'internal addresses are preferred',
  ),
  'kubelet-timeout': used('duration', '5s', 'time limit of connecting to a kubelet; if the flag is not given: 10 s'),
  'proxy-client-cert-file': used('string', '', 'client certificate for requests to aggregated API servers'),
  'proxy-client-key-file': used('string', '', 'key of --proxy-client-cert-file'),
  'enable-aggregator-routing': unused('boolean', 'false', 'requests are always sent to the endpoints of the service'),
  'aggregator-reject-forwarding-redirect': unused('boolean', 'true', 'redirects are never followed'),
  'runtime-config': used(
    'list',
    '',
    'APIs to enable or disable: api/beta=false, apps/v1=true, apps/v1/deployments=true',
  ),
  'runtime-config-emulation-forward-compatible': unused('boolean', 'false', 'older versions are not emulated'),
  'feature-gates': unused('list', '', 'the set of features is fixed'),
  'emulated-version': unused('list', '', 'older versions are not emulated'),
  'emulation-forward-compatible': unused('boolean', 'false', 'older versions are not emulated'),
  'min-compatibility-version': unused('list', '', 'older versions are not emulated'),
  'enable-priority-and-fairness': used(
    'boolean',
    'true',
    'limit requests by flow schemas and priority levels; if false, by the two in-flight limits',
  ),
  'egress-selector-config-file': used(
    'string',
    '',
    'EgressSelectorConfiguration file: HTTPConnect proxies to the cluster and the control plane',
  ),
  'peer-advertise-ip': unused('string', '', 'API servers do not forward requests to each other'),
  'peer-advertise-port': unused('string', '', 'API servers do not forward requests to each other'),
  'peer-ca-file': unused('string', '', 'API servers do not forward requests to each other'),
  'identity-lease-duration-seconds': unused('int', '3600', 'the duration is always 3600 s'),
  'identity-lease-renew-interval-seconds': unused('int', '10', 'the lease is renewed every 300 s'),
  'coordinated-leadership-lease-duration': unused('duration', '15s', 'coordinated leader election is not supported'),
  'coordinated-leadership-renew-deadline': unused('duration', '10s', 'coordinated leader election is not supported'),
  'coordinated-leadership-retry-period': unused('duration', '2s', 'coordinated leader election is not supported'),
  'cloud-config': unused('string', '', 'cloud providers are not supported'),
  'cloud-provider': unused('string', '', 'cloud providers are not supported'),
  'cloud-provider-gce-l7lb-src-cidrs': unused(
    'list',
    '130.211.0.0/22,35.191.0.0/16',
    'cloud providers are not supported',
  ),
} as const;

const LOGGING = {
  v: used('int', '0', 'log level'),
  vmodule: unused('string', '', 'all components have the same log level'),
  'logging-format': unused('string', 'text', 'the log format is fixed'),
  'log-flush-frequency': unused('duration', '5s', 'log lines are written immediately'),
  'log-json-info-buffer-size': unused('string', '0', 'log lines are written immediately'),
  'log-json-split-stream': unused('boolean', 'false', 'the log is written to standard error'),
  'log-text-info-buffer-size': unused('string', '0', 'log lines are written immediately'),
  'log-text-split-stream': unused('boolean', 'false', 'the log is written to standard error'),
  logtostderr: unused('boolean', 'true', 'the log is written to standard error'),
  alsologtostderr: unused('boolean', 'false', 'the log is written to standard error'),
  stderrthreshold: unused('string', '2', 'the log is written to standard error'),
  'log-dir': unused('string', '', 'the log is written to standard error'),
  'log-file': unused('string', '', 'the log is written to standard error'),
  'log-file-max-size': unused('int', '1800', 'the log is written to standard error'),
  'one-output': unused('boolean', 'false', 'the log is written to standard error'),
  'skip-headers': unused('boolean', 'false', 'the log format is fixed'),
  'skip-log-headers': unused('boolean', 'false', 'the log format is fixed'),
  'add-dir-header': unused('boolean', 'false', 'the log format is fixed'),
  'log-backtrace-at': unused('string', ':0', 'the log format is fixed'),
  profiling: unused('boolean', 'true', 'profiling is not supported'),
  'contention-profiling': unused('boolean', 'false', 'profiling is not supported'),
  'debug-socket-path': unused('string', '', 'profiling is not supported'),
  'tracing-config-file': unused('string', '', 'tracing is not supported'),
  'allow-metric-labels': unused('list', '', 'the set of metrics is fixed'),
  'allow-metric-labels-manifest': unused('string', '', 'the set of metrics is fixed'),
  'disabled-metrics': unused('list', '', 'the set of metrics is fixed'),
  'show-hidden-metrics-for-version': unused('string', '', 'the set of metrics is fixed'),
  version: used('boolean', 'false', 'print the version and exit'),
} as const;

/** Deprecated flags, accepted and hidden from `--help`. */
const DEPRECATED = {
  'insecure-port': refused('int', '0', 'every port uses TLS'),
  'insecure-bind-address': unused('string', '127.0.0.1', 'every port uses TLS'),
  'kubelet-port': unused('int', '10250', 'nodes report the port of their kubelet'),
  'kubelet-https': refused('boolean', 'true', 'connections to kubelets always use TLS'),
  'admission-control': refused('list', '', 'removed in 1.10; use --enable-admission-plugins'),
  'master-service-namespace': unused('string', 'default', 'the namespace is always default'),
  'azure-container-registry-config': unused('string', '', 'cloud providers are not supported'),
  'experimental-logging-sanitization': unused('boolean', 'false', 'secrets are never logged'),
} as const;

const SECTIONS = {
  Serving: SERVING,
  Store: STORE,
  Authentication: AUTHENTICATION,
  Authorization: AUTHORIZATION,
  Audit: AUDIT,
  Admission: ADMISSION,
  Cluster: CLUSTER,
  'Logging and other flags': LOGGING,
} as const;

const ALL = {
  ...SERVING,
  ...STORE,
  ...AUTHENTICATION,
  ...AUTHORIZATION,
  ...AUDIT,
  ...ADMISSION,
  ...CLUSTER,
  ...LOGGING,
  ...DEPRECATED,
};

export type ApiFlagName = keyof typeof ALL;

export function flagOf(name: string): { readonly name: ApiFlagName; readonly flag: ApiFlag } | undefined {
  return Object.hasOwn(ALL, name) ? { name: name as ApiFlagName, flag: ALL[name as ApiFlagName] } : undefined;
}

/** The text of `--help`, without its first lines. */
export function apiFlagHelp(): string {
  const mark = { used: '', void: 'no effect: ', refused: 'refused: ' } as const;
  return Object.entries(SECTIONS)
    .map(([title, flags]) => {
      const lines = Object.entries(flags as Readonly<Record<string, ApiFlag>>).map(
        ([name, { initial, help, use }]) => `  --${name} '${initial}'\n    ${mark[use]}${help}\n`,
      );
      return `\n${title}:\n${lines.join('')}`;
    })
    .join('');
}
