import type { RuntimeConfig } from '../../api/registry/runtime-config.ts';
import type { AdmissionSettings } from './admission/settings.ts';
import type { TokenIssuer } from './authentication/issuers.ts';
import type { TokenWebhook } from './authentication/token-webhook.ts';
import type { AccessWebhook } from './authorization/access-webhook.ts';
import type { BrowserSettings } from './http/browsers.ts';
import type { NamedCertificate, TlsMaterial } from './port.ts';

export type AuthorizationMode = 'Node' | 'RBAC' | 'Webhook' | 'AlwaysAllow' | 'AlwaysDeny';

/** `name`: how metrics call it; default: its type in lower case. */
export type Authorizer = { readonly name?: string } & (
  | { readonly type: Exclude<AuthorizationMode, 'Webhook'> }
  | { readonly type: 'Webhook'; readonly webhook: AccessWebhook }
);

/** What may change while the server runs: another value when it has. */
export interface Followed<T> {
  readonly current: T;
  /** Of a file. */
  readonly reloads?: Reloads;
}

/** How it went with a file since the start. */
export interface Reloads {
  /** What is in force. */
  readonly text: string;
  readonly success: Reload | undefined;
  /** It could not be read or understood, and what was in force still is. */
  readonly failure: Reload | undefined;
}

interface Reload {
  readonly count: number;
  readonly lastMs: number;
}

/** Whom it believes of those whom others know, and whom it lets in without credentials. */
export type IdentitySettings = Pick<ApiServerConfig, 'anonymous' | 'anonymousPaths' | 'tokenIssuers'>;

/** What it proves itself with, and whose certificates it believes: of clients, and of front proxies. */
export interface CertificateSettings {
  readonly serving: { readonly certificate: string; readonly key: string };
  readonly named?: readonly NamedCertificate[];
  readonly clientCa?: string;
  readonly proxyCa?: string;
  readonly kubelet?: ApiServerConfig['kubelet'];
  readonly proxyClient?: ApiServerConfig['proxyClient'];
  /** Of service account tokens. */
  readonly tokenKeys?: Pick<ApiServerConfig['serviceAccounts'], 'signingKey' | 'publicKeys'>;
}

/** Certificates that are exchanged while the server runs. Values are good: pairs fit, and bundles hold certificates. */
export interface FollowedCertificates extends Followed<CertificateSettings> {
  /** `changed` is called after each change, by one server at most. */
  subscribe(changed: () => void): void;
}

/** How OpenShift's groups behave. */
export interface OpenShiftLayer {
  /** `okd`: security context constraints are enforced, and users may request projects. */
  readonly profile: 'kubernetes' | 'okd';
  /** Routes without a host get NAME-NAMESPACE.DOMAIN. */
  readonly domain: string;
  /** Ranges of pods, with the length of the prefix that a node gets. */
  readonly clusterNetworks?: readonly { readonly cidr: string; readonly hostPrefix: number }[];
  /** URL of the API for users. */
  readonly publicUrl?: string;
}

/** What the Lease of this server shows. */
export interface ServerIdentity {
  /** `apiserver-` and a digest that no other API server of the cluster has. */
  readonly name: string;
  readonly hostname: string;
}

/** Configuration of the API server. PEM material is passed as text; the composition reads the files. */
export interface ApiServerConfig {
  readonly bindAddress: string;
  /** 0: any free port (tests). */
  readonly port: number;
  /** Written into the `kubernetes` service's endpoints; clients in the cluster reach this server by it. */
  readonly advertiseAddress: string;
  /** Name and label of the Lease that shows this server; undefined: none is written. */
  readonly identity?: ServerIdentity;
  /** OpenShift's layer. Default: the profile `kubernetes`. */
  readonly openshift?: OpenShiftLayer;
  /**
   * Only the groups, versions and default objects of kube-apiserver are served: no kinds of OpenShift, OLM, machines
   * and rigs. Default false.
   */
  readonly upstreamOnly?: boolean;
  /** Port written beside it; default: the port that is listened on. */
  readonly advertisePort?: number;
  readonly serving: { readonly certificate: string; readonly key: string };
  /** Certificates for who asks for a name, beside `serving`; the first that has it counts. */
  readonly namedServing?: readonly NamedCertificate[];
  /** What is spoken; default: TLS 1.2 and 1.3 with the suites that are safe. */
  readonly tls?: Pick<TlsMaterial, 'minVersion' | 'ciphers' | 'curves'>;
  /** Streams that one HTTP/2 connection may have open at once. Default 250. */
  readonly maxStreams?: number;
  /** Only HTTP/1.1 is served. Default false. */
  readonly withoutHttp2?: boolean;
  /** Another process may listen on the same port. Default false. */
  readonly sharesPort?: boolean;
  /** Part of the HTTP/2 requests after which a connection takes no more, 0 to 1. Default 0. */
  readonly goawayChance?: number;
  /** CORS and HSTS settings; default: none. */
  readonly browsers?: BrowserSettings;
  /** How long it goes on serving, no longer ready, once it is to stop: balancers hear of it meanwhile. Default 0. */
  readonly shutdownDelaySeconds?: number;
  /** The same, where other API servers serve this store and none is given. Default 0. */
  readonly handoverDelaySeconds?: number;
  /**
   * CA bundle of client certificates: CN is the user, O the groups. Undefined: no client certificate authentication.
   */
  readonly clientCa?: string;
  /** Requests admitted as system:anonymous: health and version paths (default), all, or none. */
  readonly anonymous?: 'health' | 'all' | 'none' | 'paths';
  /** Those of 'paths'. */
  readonly anonymousPaths?: readonly string[];
  /** In the order they are asked. Default: Node, RBAC. */
  readonly authorizers?: readonly Authorizer[];
  /** Admission plug-ins that are not to run. */
  readonly disabledAdmission?: readonly string[];
  /** Of those that run only where they are asked for: which do. */
  readonly enabledAdmission?: readonly string[];
  /** Configuration of admission plug-ins. */
  readonly admission?: AdmissionSettings;
  /** Front proxies: only with it, and only with a certificate of it, are X-Remote-* headers heeded. */
  readonly requestHeader?: {
    readonly ca: string;
    readonly allowedNames: readonly string[];
    /** Lower case. Defaults: x-remote-user, x-remote-group, x-remote-extra-, and none for UIDs. */
    readonly userHeaders?: readonly string[];
    readonly groupHeaders?: readonly string[];
    readonly extraPrefixes?: readonly string[];
    readonly uidHeaders?: readonly string[];
  };
  /**
   * Client certificate for aggregated servers: they trust the user names that it forwards. Undefined: nothing, and they
   * will not.
   */
  readonly proxyClient?: { readonly certificate: string; readonly key: string };
  readonly serviceAccounts: {
    /** PEM private key, EC P-256 or RSA, that signs tokens. */
    readonly signingKey: string;
    /** PEM public keys (or certificates) that tokens are verified with, the signing key's own among them. */
    readonly publicKeys: readonly string[];
    /** The first is that of new tokens; those of the others are taken too. */
    readonly issuer: string;
    readonly otherIssuers?: readonly string[];
    /** Where the discovery document says the keys are. Default: this server's advertised address. */
    readonly jwksUri?: string;
    /** Longest life of a token; undefined: no limit. */
    readonly maxTokenSeconds?: number;
    /** Pods' tokens live a year, with a warning for those that are used after their hour. Default false. */
    readonly extendTokens?: boolean;
    /** Default: the issuer. */
    readonly audiences?: readonly string[];
  };
  /** How long a kubelet may take to take a connection. Default 10 s. */
  readonly kubeletTimeoutMs?: number;
  /**
   * How kubelets are reached for logs, exec, attach, port-forward and proxy. Undefined: no client certificate, and the
   * kubelet's certificate is not verified.
   */
  readonly kubelet?: { readonly certificate: string; readonly key: string; readonly ca?: string };
  /** CIDR of cluster IPs, or `v4,v6`, the primary one first. Default 172.30.0.0/16. */
  readonly serviceCidr?: string;
  /** Inclusive. Default 30000–32767. */
  readonly nodePortRange?: readonly [number, number];
  /** Lines of a static token file: `token,user,uid,"group1,group2"`. */
  readonly staticTokens?: string;
  /** Take tokens of bootstrap.kubernetes.io/token secrets. Default false. */
  readonly bootstrapTokens?: boolean;
  /** OpenID Connect issuers whose ID tokens are taken. */
  readonly tokenIssuers?: readonly TokenIssuer[];
  /** TokenReview webhook for bearer tokens that no other authenticator accepts. */
  readonly tokenWebhook?: TokenWebhook;
  /** Given to pods that ask for `kube-root-ca.crt` and published in kube-public/cluster-info's place by controllers. */
  readonly clusterCa?: string;
  /**
   * True when this may be the only API server that writes to the store: while no other server has announced itself, a
   * read at "now" is satisfied by this process's own writes. False: every read asks the store.
   */
  readonly soleWriter: boolean;
  /** How long events live, in whole seconds. Default: an hour. */
  readonly eventTtlSeconds?: number;
  /** How often history is compacted, and how much is kept. Default 300 s. */
  readonly compactionIntervalSeconds?: number;
  /** Largest request body in bytes. Default 3 MiB. */
  readonly maxBodyBytes?: number;
  /** Time to answer an ordinary request. Default 60 s. */
  readonly requestTimeoutSeconds?: number;
  /** Watches that do not say how long they are to last end after this time or up to twice as much. Default 1800 s. */
  readonly minWatchSeconds?: number;
  /**
   * Requests that may be under way at once; default 400 and 200. With priority and fairness their sum is what the
   * server does at once; without, each is a limit of its own, and 0 none.
   */
  readonly maxInFlight?: { readonly reading: number; readonly mutating: number };
  /** Whether requests are classified, queued and let through by flow schemas and priority levels. Default true. */
  readonly priorityAndFairness?: boolean;
  /**
   * Built-in groups, versions and resources that are switched off, and those that stay on beside them. Default: all are
   * on.
   */
  readonly runtimeConfig?: RuntimeConfig;
  readonly features?: {
    /** Serve `/metrics` details. Default true. */
    readonly metrics?: boolean;
    /** Keep `metadata.managedFields` on every write. Default true. */
    readonly managedFields?: boolean;
  };
}
