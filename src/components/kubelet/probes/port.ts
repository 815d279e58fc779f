/** The connections that probes and lifecycle handlers open to a container. Implemented by `src/io/probing`. */

/** Longer output of a probe is cut off. */
export const MAX_PROBE_OUTPUT_BYTES = 10 * 1024;

export interface HttpAnswer {
  readonly code: number;
  readonly location: string | undefined;
  /** At most `MAX_PROBE_OUTPUT_BYTES` characters. */
  readonly body: string;
}

/** All methods reject with an Error whose message is the probe's output. */
export interface ProbeNetwork {
  /** Resolves when the connection is established; it is closed then. */
  connect(host: string, port: number, timeoutMs: number): Promise<void>;
  /**
   * GET on a new connection. A server certificate is not verified, as upstream. Redirects are returned, not followed.
   */
  httpGet(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpAnswer>;
  /**
   * The status that grpc.health.v1.Health/Check returns, by its name, without TLS; a status without a name by its
   * number. Source: grpc/grpc doc/health-checking.md.
   */
  grpcHealth(ip: string, port: number, service: string, timeoutMs: number): Promise<string | number>;
}
