/** Settings of the API server, from flags and files. */
import type { RuntimeConfig } from '../../api/registry/runtime-config.ts';
import type { AdmissionSettings } from '../admission/settings.ts';
import type { TokenIssuer } from '../authentication/issuers.ts';
import type { TokenWebhook } from '../authentication/token-webhook.ts';
import type { AccessWebhook } from '../authorization/access-webhook.ts';
import type { BrowserSettings } from '../http/browsers.ts';
import type { NamedCertificate, TlsMaterial } from '../port.ts';

export type AuthorizationMode = 'Node' | 'RBAC' | 'Webhook' | 'AlwaysAllow' | 'AlwaysDeny';

/** `name`: label in metrics. Default: the type in lower case. */
export type Authorizer = { readonly name?: string } & (
  | { readonly type: Exclude<AuthorizationMode, 'Webhook'> }
  | { readonly type: 'Webhook'; readonly webhook: AccessWebhook }
);

/** A setting that may change at run time. `current` returns a new value after a change. */
export interface Followed<T> {
  readonly current: T;
  /** Reload results, if the setting comes from a file. */
  readonly reloads?: Reloads;
}

/** Results of reloading a file since the start. */
export interface Reloads {
  /** Text of the active configuration. */
  readonly text: string;
  readonly success: Reload | undefined;
  /** Last failed reload. The previous configuration stays active. */
  readonly failure: Reload | undefined;
}

interface Reload {
  readonly count: number;
  readonly lastMs: number;
}

/** Settings for anonymous requests and token issuers. */
export type IdentitySettings = Pick<ApiServerConfig, 'anonymous' | 'anonymousPaths' | 'tokenIssuers'>;

/** Serving certificates, and the CAs of client certificates and front proxies. */
export interface CertificateSettings {
  readonly serving: { readonly certificate: string; readonly key: string };
  readonly named?: readonly NamedCertificate[];
  readonly clientCa?: string;
  readonly proxyCa?: string;
  readonly kubelet?: ApiServerConfig['kubelet'];
  readonly proxyClient?: ApiServerConfig['proxyClient'];
  /** Keys of service account tokens. */
  readonly tokenKeys?: Pick<ApiServerConfig['serviceAccounts'], 'signingKey' | 'publicKeys'>;
}

/**
 * Certificates that can be replaced at run time. The values are valid: keys match, and bundles contain certificates.
 */
export interface FollowedCertificates extends Followed<CertificateSettings> {
  /** `changed` is called after each change. Only one server may subscribe. */
  subscribe(changed: () => void): void;
}

export interface OpenShiftLayer {
  /** `okd`: security context constraints are enforced, and users may request projects. */
  readonly profile: 'kubernetes' | 'okd';
  /** Routes without a host get NAME-NAMESPACE.DOMAIN. */
  readonly domain: string;
  /** Pod CIDRs, with the prefix length of a node's part. */
  readonly clusterNetworks?: readonly { readonly cidr: string; readonly hostPrefix: number }[];
  readonly publicUrl?: string;
  /** Outbound proxy of this host. The URLs contain no passwords. */
  readonly proxy?: { readonly httpProxy?: string; readonly httpsProxy?: string; readonly noProxy: readonly string[] };
}

/** Contents of this server's Lease. */
export interface ServerIdentity {
  /** `apiserver-` and a digest that is unique in the cluster. */
  readonly name: string;
  readonly hostname: string;
}

/** Configuration of the API server. PEM material is passed as text; the composition reads the files. */
export interface ApiServerConfig {
  readonly bindAddress: string;
  /** Port to listen on. 0: any free port (for tests). */
  readonly port: number;
  /** Endpoint address of the `kubernetes` service, by which clients in the cluster connect. */
  readonly advertiseAddress: string;
  /** Name and label of this server's Lease. Undefined: no Lease is written. */
  readonly identity?: ServerIdentity;
  /** Settings of the OpenShift layer. Default: the profile `kubernetes`. */
  readonly openshift?: OpenShiftLayer;
  /**
   * True: only the groups, versions and default objects of kube-apiserver are served, without the kinds of OpenShift,
   * OLM, machines and rigs. Default false.
   */
  readonly upstreamOnly?: boolean;
  /** Endpoint port of the `kubernetes` service. Default: the port on which the server listens. */
  readonly advertisePort?: number;
  readonly serving: { readonly certificate: string; readonly key: string };
  /** Certificates for certain server names (SNI), in addition to `serving`. The first match is used. */
  readonly namedServing?: readonly NamedCertificate[];
  /** TLS settings of the listener. Default: TLS 1.2 and 1.3 with secure cipher suites. */
  readonly tls?: Pick<TlsMaterial, 'minVersion' | 'ciphers' | 'curves'>;
  /** Maximum number of concurrent streams per HTTP/2 connection. Default 250. */
  readonly maxStreams?: number;
  /** True: only HTTP/1.1 is served. Default false. */
  readonly withoutHttp2?: boolean;
  /** True: another process may listen on the same port. Default false. */
  readonly sharesPort?: boolean;
  /** Probability, 0 to 1, that an HTTP/2 request makes the server close the connection with GOAWAY. Default 0. */
  readonly goawayChance?: number;
  /** CORS and HSTS settings; default: none. */
  readonly browsers?: BrowserSettings;
  /**
   * Seconds that the server continues to serve after shutdown began, while /readyz fails, so that load balancers
   * notice. Default 0.
   */
  readonly shutdownDelaySeconds?: number;
  /** Shutdown delay if `shutdownDelaySeconds` is not set and other API servers serve the same store. Default 0. */
  readonly handoverDelaySeconds?: number;
  /**
   * CA bundle of client certificates: CN is the user, O the groups. Undefined: no client certificate authentication.
   */
  readonly clientCa?: string;
  /** Requests admitted as system:anonymous: health and version paths (default), all, or none. */
  readonly anonymous?: 'health' | 'all' | 'none' | 'paths';
  /** Paths that anonymous users may request if `anonymous` is 'paths'. */
  readonly anonymousPaths?: readonly string[];
  /** Authorizers in their order. Default: Node, RBAC. */
  readonly authorizers?: readonly Authorizer[];
  readonly disabledAdmission?: readonly string[];
  /** Admission plug-ins that are off by default and are switched on. */
  readonly enabledAdmission?: readonly string[];
  readonly admission?: AdmissionSettings;
  /** Front proxy settings. X-Remote-* headers are used only with a client certificate of this CA. */
  readonly requestHeader?: {
    readonly ca: string;
    readonly allowedNames: readonly string[];
    /** Header names in lower case. Defaults: x-remote-user, x-remote-group, x-remote-extra-, and no header for UIDs. */
    readonly userHeaders?: readonly string[];
    readonly groupHeaders?: readonly string[];
    readonly extraPrefixes?: readonly string[];
    readonly uidHeaders?: readonly string[];
  };
  /**
   * Client certificate for aggregated API servers, which then trust the user headers of this server. Undefined: no
   * client certificate, so aggregated servers reject the headers.
   */
  readonly proxyClient?: { readonly certificate: string; readonly key: string };
  readonly serviceAccounts: {
    /** PEM private key, EC P-256 or RSA, that signs tokens. */
    readonly signingKey: string;
    /** PEM public keys (or certificates) that verify tokens, including the public key of `signingKey`. */
    readonly publicKeys: readonly string[];
    /** Issuer of new tokens. Tokens of `otherIssuers` are accepted too. */
    readonly issuer: string;
    readonly otherIssuers?: readonly string[];
    /** URL of the keys in the discovery document. Default: this server's advertised address. */
    readonly jwksUri?: string;
    /** Maximum lifetime of a token. Undefined: no limit. */
    readonly maxTokenSeconds?: number;
    /** True: tokens of pods are valid for a year, and their use after the requested hour is reported. Default false. */
    readonly extendTokens?: boolean;
    /** Audiences of tokens that are requested without audiences. Default: the issuer. */
    readonly audiences?: readonly string[];
  };
  /** Timeout of connections to kubelets. Default 10 s. */
  readonly kubeletTimeoutMs?: number;
  /**
   * Client certificate and CA for kubelets (logs, exec, attach, port-forward, proxy). Undefined: no client certificate,
   * and the kubelet's certificate is not verified.
   */
  readonly kubelet?: { readonly certificate: string; readonly key: string; readonly ca?: string };
  /** CIDR of cluster IPs, or `v4,v6`, the primary one first. Default 172.30.0.0/16. */
  readonly serviceCidr?: string;
  /** Range of node ports, inclusive. Default 30000–32767. */
  readonly nodePortRange?: readonly [number, number];
  /** Lines of a static token file: `token,user,uid,"group1,group2"`. */
  readonly staticTokens?: string;
  /**
   * True: bootstrap tokens are accepted. They are stored in secrets of type bootstrap.kubernetes.io/token. Default
   * false.
   */
  readonly bootstrapTokens?: boolean;
  /** OpenID Connect issuers whose ID tokens are accepted. */
  readonly tokenIssuers?: readonly TokenIssuer[];
  /** TokenReview webhook for bearer tokens that no other authenticator accepts. */
  readonly tokenWebhook?: TokenWebhook;
  /**
   * True if this may be the only API server that writes to the store. Then, while no other server has announced itself,
   * consistent reads are served from this process's own writes. False: every consistent read queries the store.
   */
  readonly soleWriter: boolean;
  /** Lifetime of events in seconds. Default: 3600. */
  readonly eventTtlSeconds?: number;
  /** Interval between compactions, which is also the length of the kept history. Default 300 s. */
  readonly compactionIntervalSeconds?: number;
  /** Largest request body in bytes. Default 3 MiB. */
  readonly maxBodyBytes?: number;
  /** Deadline of ordinary requests. Default 60 s. */
  readonly requestTimeoutSeconds?: number;
  /** Watches without a timeout end after this time or up to twice as much. Default 1800 s. */
  readonly minWatchSeconds?: number;
  /**
   * Maximum numbers of concurrent requests. Default 400 reading and 200 mutating. With priority and fairness, the sum
   * is the number of seats. Without priority and fairness, each number is a separate limit, and 0 means no limit.
   */
  readonly maxInFlight?: { readonly reading: number; readonly mutating: number };
  /** Classifies and queues requests by flow schemas and priority levels. Default true. */
  readonly priorityAndFairness?: boolean;
  /** Built-in groups, versions and resources that are switched off or on. Default: all are on. */
  readonly runtimeConfig?: RuntimeConfig;
  readonly features?: {
    /** Serves detailed metrics at `/metrics`. Default true. */
    readonly metrics?: boolean;
    /** Keeps `metadata.managedFields` on every write. Default true. */
    readonly managedFields?: boolean;
  };
}
