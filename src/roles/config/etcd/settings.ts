/** The settings of `hyperedge etcd`, from flags, variables or a configuration file. */
import type { EtcdUrl } from './go-values.ts';

export interface EtcdMember {
  readonly name: string;
  readonly peerUrls: readonly string[];
}

export interface EtcdTlsSettings {
  /** Files; both or neither. Neither: see `automatic`. */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  /** Authorities of the other side's certificates. */
  readonly trustedCaFile: string | undefined;
  /** The other side must present a certificate. Without `trustedCaFile` the system's CAs verify it. */
  readonly requireCertificate: boolean;
  /** Revoked certificates, PEM or DER. */
  readonly crlFile: string | undefined;
  /** Not empty: the certificate has to bear one of these host names. */
  readonly allowedHostnames: readonly string[];
  /** Not empty: the certificate has to bear one of these common names. */
  readonly allowedCommonNames: readonly string[];
  /** Certificate and key are made below the data directory. */
  readonly automatic: boolean;
}

/** Of this process: what it listens on for clients and for members. */
export interface EtcdPeerTlsSettings extends EtcdTlsSettings {
  /** Shown to the other members when this one calls them. */
  readonly clientCertFile: string | undefined;
  readonly clientKeyFile: string | undefined;
}

export interface EtcdTlsLimits {
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion: 'TLSv1.2' | 'TLSv1.3';
  /** In OpenSSL's names, separated by colons; undefined: the run-time's own choice. */
  readonly ciphers: string | undefined;
  /** How long certificates of `automatic` are valid. */
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
    /** Not empty: HTTP is served here, and the client addresses serve gRPC alone. */
    readonly clientHttp: readonly EtcdUrl[];
    readonly peer: readonly EtcdUrl[];
    readonly metrics: readonly EtcdUrl[];
    readonly reusePort: boolean;
  };
  readonly advertise: { readonly client: readonly string[]; readonly peer: readonly string[] };
  readonly cluster: {
    /** From `--initial-cluster`; counts only as long as the data directory is empty. */
    readonly members: readonly EtcdMember[];
    /** Why a new data directory cannot be created with these settings; undefined: it can. */
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
    /** The election timeout is not configured: it adapts to measured latencies. */
    readonly adapts: boolean;
    readonly advanceInitialTicks: boolean;
    readonly snapshotCount: number;
  };
  readonly tls: {
    readonly client: EtcdTlsSettings;
    readonly peer: EtcdPeerTlsSettings;
    readonly limits: EtcdTlsLimits;
  };
  /** Bytes; 0: etcd's default of 2 GiB; negative: no quota. */
  readonly quotaBytes: number;
  readonly compaction: EtcdCompaction | undefined;
  readonly limits: {
    readonly requestBytes: number;
    readonly transactionOperations: number;
    readonly concurrentStreams: number;
  };
  /** Milliseconds; an interval or time-out of 0 switches it off. */
  readonly keepAlive: { readonly intervalMs: number; readonly timeoutMs: number };
  readonly auth: {
    /** `simple`, or `jwt` with its options: see `createTokens` of the component. */
    readonly token: string;
    readonly simpleTokenTtlSeconds: number;
    /** With auth enabled, a client without a token authenticates as its certificate's common name. */
    readonly byCertificate: boolean;
    readonly bcryptCost: number;
  };
  readonly corruption: { readonly checkAtStart: boolean; readonly intervalMs: number };
  readonly progressNotifyMs: number;
  /** Adds histograms of call durations to the metrics. */
  readonly extensiveMetrics: boolean;
  readonly slow: { readonly applyMs: number; readonly requestMs: number };
  /** Accepted Host headers of plain HTTP requests; undefined: any. */
  readonly hostWhitelist: ReadonlySet<string> | undefined;
  readonly unsafeNoFsync: boolean;
  readonly log: EtcdLogSettings;
}

export interface EtcdLogSettings {
  readonly least: 'info' | 'warn' | 'error';
  /** klog's verbosity. */
  readonly verbosity: number;
  /** `stderr`, `stdout`, or files. */
  readonly outputs: readonly string[];
}
