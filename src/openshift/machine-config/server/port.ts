/** Listener of the machine config server. */
export interface ConfigRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly accept: string;
  /** Value of the Authorization header. Empty when it is missing. */
  readonly authorization: string;
  readonly remoteAddress: string;
}

export interface ConfigAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. Absent for an empty response. */
  readonly body?: string;
}

export interface ListenOptions {
  readonly address: string;
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string };
  /** Connections from rejected addresses are closed before their handshake. */
  readonly admits: (remoteAddress: string) => boolean;
  readonly handle: (request: ConfigRequest) => Promise<ConfigAnswer>;
}

export interface ConfigListener {
  readonly port: number;
  updateTls(tls: ListenOptions['tls']): void;
  close(): Promise<void>;
}
