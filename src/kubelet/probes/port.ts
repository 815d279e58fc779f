/** Connections that probes and lifecycle handlers open to a container. Implemented by `src/kubelet/io/probing`. */

/** Longer probe output is truncated. */
export const MAX_PROBE_OUTPUT_BYTES = 10 * 1024;

export interface HttpAnswer {
  readonly code: number;
  readonly location: string | undefined;
  /** At most `MAX_PROBE_OUTPUT_BYTES` characters. */
  readonly body: string;
}

export interface ProbeNetwork {
  /** Resolves when the connection is established, and closes it. */
  connect(host: string, port: number, timeoutMs: number): Promise<void>;
  /**
   * Sends a GET on a new connection. The server certificate is not verified, as in upstream. Redirects are returned,
   * not followed.
   */
  httpGet(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpAnswer>;
  /**
   * Name of the status that grpc.health.v1.Health/Check returns without TLS, or its number when it has no name. Source:
   * grpc/grpc doc/health-checking.md.
   */
  grpcHealth(ip: string, port: number, service: string, timeoutMs: number): Promise<string | number>;
}
