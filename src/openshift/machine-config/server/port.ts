/** Port of the machine config server to its HTTPS listener. */
export interface ConfigRequest {
  readonly method: string;
  /** Path of the URL, without the query. */
  readonly path: string;
  readonly accept: string;
  /** Value of the Authorization header; empty if the header is missing. */
  readonly authorization: string;
  readonly remoteAddress: string;
}

export interface ConfigAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body in JSON. Absent if the response has no body. */
  readonly body?: string;
}

export interface ListenOptions {
  readonly address: string;
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string };
  /** Decides by the remote address. A rejected connection is closed before the TLS handshake. */
  readonly admits: (remoteAddress: string) => boolean;
  readonly handle: (request: ConfigRequest) => Promise<ConfigAnswer>;
}

export interface ConfigListener {
  readonly port: number;
  updateTls(tls: ListenOptions['tls']): void;
  close(): Promise<void>;
}
