/** The settings of `hyperedge etcd`, from flags, variables or a configuration file. */
import type { EtcdUrl } from '../../wire/go-flag-values.ts';

export interface EtcdMember {
  readonly name: string;
  readonly peerUrls: readonly string[];
}

export interface EtcdTlsSettings {
  /** Certificate and key files; both or neither. If neither is set, see `automatic`. */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  /** CA file that verifies the certificates of the other side of a connection. */
  readonly trustedCaFile: string | undefined;
  /** The peer must present a certificate. Without `trustedCaFile` the system's CAs verify it. */
  readonly requireCertificate: boolean;
  /** Revocation list, PEM or DER. */
  readonly crlFile: string | undefined;
  /** If not empty, the certificate must contain one of these host names. */
  readonly allowedHostnames: readonly string[];
  /** If not empty, the certificate must have one of these common names. */
  readonly allowedCommonNames: readonly string[];
  /** Certificate and key are created below the data directory. */
  readonly automatic: boolean;
}

/** TLS settings of the peer listener and of connections to other members. */
export interface EtcdPeerTlsSettings extends EtcdTlsSettings {
  /** Client certificate for connections to other members. */
  readonly clientCertFile: string | undefined;
  readonly clientKeyFile: string | undefined;
}

export interface EtcdTlsLimits {
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion: 'TLSv1.2' | 'TLSv1.3';
  /** Cipher suites with OpenSSL's names, separated by colons; undefined for the default of Node.js. */
  readonly ciphers: string | undefined;
  /** Lifetime of certificates created by `automatic`. */
  readonly selfSignedYears: number;
}

export type EtcdCompaction =
  | { readonly mode: 'periodic'; readonly retentionMs: number }
  | { readonly mode: 'revision'; readonly revisions: number };

export interface EtcdSettings {
  readonly name: string;
  readonly jsonGateway: boolean;
  readonly dataDirectory: string;
  readonly listen: {
    readonly client: readonly EtcdUrl[];
    /** If not empty, HTTP is served on these addresses, and the client addresses serve only gRPC. */
    readonly clientHttp: readonly EtcdUrl[];
    readonly peer: readonly EtcdUrl[];
    readonly metrics: readonly EtcdUrl[];
    readonly reusePort: boolean;
  };
  readonly advertise: { readonly client: readonly string[]; readonly peer: readonly string[] };
  readonly cluster: {
    /** From `--initial-cluster`; used only while the data directory is empty. */
    readonly members: readonly EtcdMember[];
    /** Reason why a new data directory cannot be created with these settings; undefined if it can. */
    readonly bootstrapProblem: string | undefined;
    readonly state: 'new' | 'existing';
    readonly token: string;
    readonly forceNew: boolean;
    readonly strictReconfigCheck: boolean;
    readonly maxLearners: number;
  };
  readonly raft: {
    readonly heartbeatMs: number;
    readonly electionMs: number;
    /** The election timeout is not configured, so it adapts to measured latencies. */
    readonly adapts: boolean;
    readonly advanceInitialTicks: boolean;
    readonly snapshotCount: number;
  };
  readonly tls: {
    readonly client: EtcdTlsSettings;
    readonly peer: EtcdPeerTlsSettings;
    readonly limits: EtcdTlsLimits;
  };
  /** Bytes; 0 means etcd's default of 2 GiB; negative means no quota. */
  readonly quotaBytes: number;
  readonly compaction: EtcdCompaction | undefined;
  readonly limits: {
    readonly requestBytes: number;
    readonly transactionOperations: number;
    readonly concurrentStreams: number;
  };
  /** Times in milliseconds. An interval or timeout of 0 disables keep-alive pings. */
  readonly keepAlive: { readonly intervalMs: number; readonly timeoutMs: number };
  readonly auth: {
    /** `simple`, or `jwt` with its options: see `createTokens`. */
    readonly token: string;
    readonly simpleTokenTtlSeconds: number;
    /** With auth enabled, a client without a token authenticates with its certificate's common name. */
    readonly byCertificate: boolean;
    readonly bcryptCost: number;
  };
  readonly corruption: { readonly checkAtStart: boolean; readonly intervalMs: number };
  readonly progressNotifyMs: number;
  /** Adds histograms of call durations to the metrics. */
  readonly extensiveMetrics: boolean;
  readonly slow: { readonly applyMs: number; readonly requestMs: number };
  /** Accepted Host headers of plain HTTP requests; undefined accepts any. */
  readonly hostWhitelist: ReadonlySet<string> | undefined;
  readonly unsafeNoFsync: boolean;
  readonly log: EtcdLogSettings;
}

export interface EtcdLogSettings {
  readonly least: 'info' | 'warn' | 'error';
  /** Verbosity as in klog. */
  readonly verbosity: number;
  /** `stderr`, `stdout`, or files. */
  readonly outputs: readonly string[];
}
