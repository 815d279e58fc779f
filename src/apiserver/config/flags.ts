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
  'advertise-address': used('string', '', 'address that clients in the cluster reach this server by'),
  'bind-address': used('string', '0.0.0.0', 'address to listen on'),
  'secure-port': used('int', '6443', 'port to listen on'),
  'cert-dir': used('string', '/var/run/kubernetes', 'where a certificate is made when none is given'),
  'tls-cert-file': used('string', '', 'certificate of the server, with its intermediates'),
  'tls-private-key-file': used('string', '', 'its key'),
  'tls-min-version': used('string', '', 'minimum TLS version', ['', 'VersionTLS12', 'VersionTLS13']),
  'tls-cipher-suites': used('list', '', 'cipher suites of TLS 1.2, in Go’s names; default: those that are safe'),
  'tls-curve-preferences': used(
    'list',
    '',
    'groups of key exchange: 23, 24, 25 (P-256, 384, 521), 29 (X25519), 4588 (X25519MLKEM768)',
  ),
  'tls-sni-cert-key': used('repeated', '', 'CERT,KEY or CERT,KEY:NAME,NAME: a certificate for its SNI names'),
  'external-hostname': used('string', '', 'host in the address of the key set, where that is not given'),
  'request-timeout': used('duration', '1m0s', 'longest an ordinary request may take'),
  'min-request-timeout': used('int', '1800', 'seconds after which watches end, or up to twice as many'),
  'max-requests-inflight': used('int', '400', 'reading requests at once'),
  'max-mutating-requests-inflight': used('int', '200', 'writing requests at once'),
  'permit-address-sharing': unused('boolean', 'false', 'addresses are always taken up again at once'),
  'permit-port-sharing': used('boolean', 'false', 'let another process listen on the port too'),
  'http2-max-streams-per-connection': used('int', '0', 'requests that one connection may have under way; 0: 250'),
  'disable-http2-serving': used('boolean', 'false', 'speak HTTP/1.1 only'),
  'goaway-chance': used('float', '0', 'probability that a request closes its HTTP/2 connection with GOAWAY, 0 to 0.02'),
  'strict-transport-security-directives': used(
    'list',
    '',
    'Strict-Transport-Security directives: max-age=SECONDS, includeSubDomains, preload',
  ),
  'cors-allowed-origins': used('list', '', 'patterns of origins allowed by CORS'),
  'shutdown-delay-duration': used('duration', '0s', 'how long it serves on, no longer ready, before it stops'),
  'shutdown-send-retry-after': unused('boolean', 'false', 'new connections are refused at once'),
  'shutdown-watch-termination-grace-period': unused('duration', '0s', 'watches end at once'),
  'livez-grace-period': unused('duration', '0s', '/livez answers at once'),
  'max-connection-bytes-per-sec': unused('int', '0', 'connections are not slowed down'),
} as const;

const STORE = {
  'etcd-servers': used('list', '', 'the store: URLs of etcd'),
  'etcd-cafile': used('string', '', 'authority of the store’s certificate'),
  'etcd-certfile': used('string', '', 'client certificate for the store'),
  'etcd-keyfile': used('string', '', 'its key'),
  'etcd-prefix': refused('string', '/registry', 'objects are kept below /registry'),
  'etcd-servers-overrides': refused('list', '', 'all kinds are in one store'),
  'etcd-compaction-interval': used('duration', '5m0s', 'how often history is compacted'),
  'etcd-count-metric-poll-period': unused('duration', '1m0s', 'objects are counted in memory'),
  'etcd-db-metric-poll-interval': unused('duration', '30s', 'the store has metrics of its own'),
  'etcd-healthcheck-timeout': unused('duration', '2s', 'is 2 s'),
  'etcd-readycheck-timeout': unused('duration', '2s', 'is 2 s'),
  'storage-backend': used('string', '', 'etcd3', ['', 'etcd3']),
  'storage-media-type': unused(
    'string',
    'application/vnd.kubernetes.protobuf',
    'objects are stored as JSON, which upstream reads',
  ),
  'storage-initialization-timeout': unused('duration', '1m0s', 'the store is waited for'),
  'encryption-provider-config': used('string', '', 'what is encrypted in the store: an EncryptionConfiguration file'),
  'encryption-provider-config-automatic-reload': used('boolean', 'false', 'follow the file'),
  'watch-cache': unused('boolean', 'true', 'everything is served from the watch cache'),
  'watch-cache-sizes': unused('list', '', 'the watch cache holds everything'),
  'default-watch-cache-size': unused('int', '100', 'the watch cache holds everything'),
  'delete-collection-workers': unused('int', '1', 'chosen by itself'),
  'enable-garbage-collector': refused('boolean', 'true', 'owners are always respected'),
  'event-ttl': used('duration', '1h0m0s', 'how long events live'),
  'lease-reuse-duration-seconds': unused('int', '60', 'is 60 s'),
} as const;

const AUTHENTICATION = {
  'anonymous-auth': used('boolean', 'true', 'whether requests without credentials are let in as system:anonymous'),
  'client-ca-file': used('string', '', 'authorities of client certificates'),
  'token-auth-file': used('string', '', 'static tokens, one a line: token,user,uid,"groups"'),
  'enable-bootstrap-token-auth': used('boolean', 'false', 'take tokens of bootstrap.kubernetes.io/token secrets'),
  'authentication-config': used('string', '', 'AuthenticationConfiguration file: JWT issuers and anonymous'),
  'authentication-token-webhook-config-file': used('string', '', 'kubeconfig of the token review webhook'),
  'authentication-token-webhook-cache-ttl': used('duration', '2m0s', 'how long its answers are kept'),
  'authentication-token-webhook-version': used('string', 'v1', 'authentication.k8s.io version', ['v1', 'v1beta1']),
  'api-audiences': used('list', '', 'what tokens must be for; default: the issuer'),
  'oidc-issuer-url': used('string', '', 'issuer of ID tokens, https'),
  'oidc-client-id': used('string', '', 'audience that ID tokens must have'),
  'oidc-username-claim': used('string', 'sub', 'claim that names the user'),
  'oidc-username-prefix': used('string', '', 'put before user names; "-" for none'),
  'oidc-groups-claim': used('string', '', 'claim that names the groups'),
  'oidc-groups-prefix': used('string', '', 'put before group names'),
  'oidc-required-claim': used('repeated', '', 'key=value that must be in the token'),
  'oidc-signing-algs': used('list', 'RS256', 'algorithms that are taken'),
  'oidc-ca-file': used('string', '', 'authority of the issuer’s certificate'),
  'requestheader-client-ca-file': used('string', '', 'authority of front proxies'),
  'requestheader-allowed-names': used('list', '', 'common names of front proxies; empty: any'),
  'requestheader-username-headers': used('list', 'X-Remote-User', 'headers with the user’s name'),
  'requestheader-group-headers': used('list', 'X-Remote-Group', 'headers with the groups'),
  'requestheader-extra-headers-prefix': used('list', 'X-Remote-Extra-', 'prefixes of headers with more'),
  'requestheader-uid-headers': used('list', '', 'headers with the user’s UID'),
  'service-account-issuer': used('repeated', '', 'issuer of tokens; more of them are accepted'),
  'service-account-jwks-uri': used('string', '', 'address of the key set in the discovery document'),
  'service-account-key-file': used('repeated', '', 'keys that tokens are verified with'),
  'service-account-signing-key-file': used('string', '', 'key that tokens are signed with'),
  'service-account-signing-endpoint': refused(
    'string',
    '',
    'tokens are signed here; give --service-account-signing-key-file',
  ),
  'service-account-lookup': refused('boolean', 'true', 'tokens end with their account'),
  'service-account-extend-token-expiration': used(
    'boolean',
    'true',
    'tokens of pods live a year, with a warning after the hour',
  ),
  'service-account-max-token-expiration': used('duration', '0s', 'longest life of a token; 0: no limit'),
} as const;

const AUTHORIZATION = {
  'authorization-mode': used('list', 'AlwaysAllow', 'in order: Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny'),
  'authorization-config': used('string', '', 'AuthorizationConfiguration file, reloaded on change'),
  'authorization-policy-file': refused('string', '', 'there is no ABAC; write roles'),
  'authorization-webhook-config-file': used('string', '', 'kubeconfig of the authorization webhook'),
  'authorization-webhook-cache-authorized-ttl': used('duration', '5m0s', 'how long a yes is kept'),
  'authorization-webhook-cache-unauthorized-ttl': used('duration', '30s', 'how long a no is kept'),
  'authorization-webhook-version': used('string', 'v1', 'authorization.k8s.io version', ['v1', 'v1beta1']),
} as const;

const AUDIT = {
  'audit-policy-file': used('string', '', 'what is recorded'),
  'audit-log-path': used('string', '', 'file of events, JSON lines; "-": standard output'),
  'audit-log-format': used('string', 'json', 'json', ['json']),
  'audit-log-version': used('string', 'audit.k8s.io/v1', 'audit.k8s.io/v1', ['audit.k8s.io/v1']),
  'audit-log-mode': used(
    'string',
    'blocking',
    'blocking: answers wait until the event is written; blocking-strict: and a request whose first event cannot be written fails; batch: answers do not wait',
    ['batch', 'blocking', 'blocking-strict'],
  ),
  'audit-log-maxage': used('int', '366', 'days that old files are kept; 0: no limit'),
  'audit-log-maxbackup': used('int', '100', 'old files that are kept; 0: no limit'),
  'audit-log-maxsize': used('int', '100', 'megabytes after which a new file is begun; 0: never'),
  'audit-log-compress': used('boolean', 'false', 'compress old files (gzip)'),
  'audit-log-batch-buffer-size': used('int', '10000', 'events that may wait'),
  'audit-log-batch-max-size': used('int', '1', 'events in a batch'),
  'audit-log-batch-max-wait': used('duration', '0s', 'longest that an event waits for others'),
  'audit-log-batch-throttle-burst': used('int', '0', 'batches at once after a pause'),
  'audit-log-batch-throttle-enable': used('boolean', 'false', 'allow only so many batches a second'),
  'audit-log-batch-throttle-qps': used('float', '0', 'batches a second'),
  'audit-log-truncate-enabled': used('boolean', 'false', 'leave bodies out of events that are too large'),
  'audit-log-truncate-max-batch-size': used('int', '10485760', 'events are written one by one, so it has no effect'),
  'audit-log-truncate-max-event-size': used(
    'int',
    '102400',
    'bytes; larger events are written without bodies, or dropped if they are still larger',
  ),
  'audit-webhook-config-file': used('string', '', 'kubeconfig of who is sent the events'),
  'audit-webhook-version': used('string', 'audit.k8s.io/v1', 'audit.k8s.io/v1', ['audit.k8s.io/v1']),
  'audit-webhook-mode': used(
    'string',
    'batch',
    'batch: answers do not wait; blocking: answers wait until the event is delivered; blocking-strict: and a request whose first event cannot be delivered fails',
    ['batch', 'blocking', 'blocking-strict'],
  ),
  'audit-webhook-initial-backoff': used('duration', '10s', 'pause before a batch is sent again'),
  'audit-webhook-batch-buffer-size': used('int', '10000', 'events that may wait'),
  'audit-webhook-batch-max-size': used('int', '400', 'events in a batch'),
  'audit-webhook-batch-max-wait': used('duration', '30s', 'longest that an event waits for others'),
  'audit-webhook-batch-throttle-burst': used('int', '15', 'batches at once after a pause'),
  'audit-webhook-batch-throttle-enable': used('boolean', 'true', 'allow only so many batches a second'),
  'audit-webhook-batch-throttle-qps': used('float', '10', 'batches a second'),
  'audit-webhook-truncate-enabled': used('boolean', 'false', 'leave bodies out of events that are too large'),
  'audit-webhook-truncate-max-batch-size': used('int', '10485760', 'bytes of a batch; the rest is sent with the next'),
  'audit-webhook-truncate-max-event-size': used(
    'int',
    '102400',
    'bytes; larger events are written without bodies, or dropped if they are still larger',
  ),
} as const;

const ADMISSION = {
  'enable-admission-plugins': used('list', '', 'plug-ins beside those that are on by default'),
  'disable-admission-plugins': used('list', '', 'plug-ins that are not to run'),
  'admission-control-config-file': used(
    'string',
    '',
    'an AdmissionConfiguration file with the configuration of plug-ins',
  ),
  'default-not-ready-toleration-seconds': used('int', '300', 'how long pods stay on a node that is not ready'),
  'default-unreachable-toleration-seconds': used('int', '300', 'how long pods stay on a node that is out of reach'),
} as const;

const CLUSTER = {
  'service-cluster-ip-range': used('string', '10.0.0.0/24', 'addresses of services'),
  'service-node-port-range': used('string', '30000-32767', 'ports of services on nodes'),
  'kubernetes-service-node-port': unused('int', '0', 'the service kubernetes has a cluster address only'),
  'allow-privileged': used('boolean', 'false', 'privileged containers are always taken'),
  'apiserver-count': unused('int', '1', 'servers find each other in the store'),
  'endpoint-reconciler-type': unused('string', 'lease', 'servers find each other in the store'),
  'kubelet-client-certificate': used('string', '', 'client certificate for kubelets'),
  'kubelet-client-key': used('string', '', 'its key'),
  'kubelet-certificate-authority': used('string', '', 'authority of kubelets’ certificates'),
  'kubelet-preferred-address-types': unused(
    'list',
    'Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP',
    'internal addresses come first',
  ),
  'kubelet-timeout': used('duration', '5s', 'how long a kubelet may take to take a connection; not given: 10 s'),
  'proxy-client-cert-file': used('string', '', 'client certificate for API servers that extend this one'),
  'proxy-client-key-file': used('string', '', 'its key'),
  'enable-aggregator-routing': unused('boolean', 'false', 'end points are always called themselves'),
  'aggregator-reject-forwarding-redirect': unused('boolean', 'true', 'redirects are never followed'),
  'runtime-config': used('list', '', 'APIs that are on or off: api/beta=false, apps/v1=true, apps/v1/deployments=true'),
  'runtime-config-emulation-forward-compatible': unused('boolean', 'false', 'nothing is emulated'),
  'feature-gates': unused('list', '', 'features are fixed'),
  'emulated-version': unused('list', '', 'features are fixed'),
  'emulation-forward-compatible': unused('boolean', 'false', 'features are fixed'),
  'min-compatibility-version': unused('list', '', 'features are fixed'),
  'enable-priority-and-fairness': used(
    'boolean',
    'true',
    'limit requests by flow schemas and priority levels; otherwise by two in-flight limits',
  ),
  'egress-selector-config-file': used(
    'string',
    '',
    'EgressSelectorConfiguration file: through which proxy (HTTPConnect) the cluster and control plane are reached',
  ),
  'peer-advertise-ip': unused('string', '', 'servers do not call each other'),
  'peer-advertise-port': unused('string', '', 'servers do not call each other'),
  'peer-ca-file': unused('string', '', 'servers do not call each other'),
  'identity-lease-duration-seconds': unused('int', '3600', 'servers have no lease'),
  'identity-lease-renew-interval-seconds': unused('int', '10', 'servers have no lease'),
  'coordinated-leadership-lease-duration': unused('duration', '15s', 'leaders elect themselves'),
  'coordinated-leadership-renew-deadline': unused('duration', '10s', 'leaders elect themselves'),
  'coordinated-leadership-retry-period': unused('duration', '2s', 'leaders elect themselves'),
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
  vmodule: unused('string', '', 'the log has one level'),
  'logging-format': unused('string', 'text', 'the log has one form'),
  'log-flush-frequency': unused('duration', '5s', 'lines are written at once'),
  'log-json-info-buffer-size': unused('string', '0', 'lines are written at once'),
  'log-json-split-stream': unused('boolean', 'false', 'the log goes to standard error'),
  'log-text-info-buffer-size': unused('string', '0', 'lines are written at once'),
  'log-text-split-stream': unused('boolean', 'false', 'the log goes to standard error'),
  logtostderr: unused('boolean', 'true', 'the log goes to standard error'),
  alsologtostderr: unused('boolean', 'false', 'the log goes to standard error'),
  stderrthreshold: unused('string', '2', 'the log goes to standard error'),
  'log-dir': unused('string', '', 'the log goes to standard error'),
  'log-file': unused('string', '', 'the log goes to standard error'),
  'log-file-max-size': unused('int', '1800', 'the log goes to standard error'),
  'one-output': unused('boolean', 'false', 'the log goes to standard error'),
  'skip-headers': unused('boolean', 'false', 'the log has one form'),
  'skip-log-headers': unused('boolean', 'false', 'the log has one form'),
  'add-dir-header': unused('boolean', 'false', 'the log has one form'),
  'log-backtrace-at': unused('string', ':0', 'the log has one form'),
  profiling: unused('boolean', 'true', 'nothing is profiled'),
  'contention-profiling': unused('boolean', 'false', 'nothing is profiled'),
  'debug-socket-path': unused('string', '', 'nothing is profiled'),
  'tracing-config-file': unused('string', '', 'nothing is traced'),
  'allow-metric-labels': unused('list', '', 'metrics are fixed'),
  'allow-metric-labels-manifest': unused('string', '', 'metrics are fixed'),
  'disabled-metrics': unused('list', '', 'metrics are fixed'),
  'show-hidden-metrics-for-version': unused('string', '', 'metrics are fixed'),
  version: used('boolean', 'false', 'print the version and end'),
} as const;

/** Deprecated flags, accepted and hidden from `--help`. */
const DEPRECATED = {
  'insecure-port': refused('int', '0', 'every port uses TLS'),
  'insecure-bind-address': unused('string', '127.0.0.1', 'every port uses TLS'),
  'kubelet-port': unused('int', '10250', 'nodes report their port'),
  'kubelet-https': refused('boolean', 'true', 'connections to kubelets use TLS'),
  'admission-control': refused('list', '', 'removed in 1.10; use --enable-admission-plugins'),
  'master-service-namespace': unused('string', 'default', 'is default'),
  'azure-container-registry-config': unused('string', '', 'cloud providers are not supported'),
  'experimental-logging-sanitization': unused('boolean', 'false', 'secrets are never logged'),
} as const;

const SECTIONS = {
  Serving: SERVING,
  'The store': STORE,
  Authentication: AUTHENTICATION,
  Authorization: AUTHORIZATION,
  Audit: AUDIT,
  Admission: ADMISSION,
  Cluster: CLUSTER,
  'Log and the rest': LOGGING,
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
  const mark = { used: '', void: 'without meaning here: ', refused: 'refused: ' } as const;
  return Object.entries(SECTIONS)
    .map(([title, flags]) => {
      const lines = Object.entries(flags as Readonly<Record<string, ApiFlag>>).map(
        ([name, { initial, help, use }]) => `  --${name} '${initial}'\n    ${mark[use]}${help}\n`,
      );
      return `\n${title}:\n${lines.join('')}`;
    })
    .join('');
}
