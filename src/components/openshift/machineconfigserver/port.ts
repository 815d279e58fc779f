/** The listener of the machine config server. */
export interface ConfigRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly accept: string;
  /** The header of that name; empty: there is none. */
  readonly authorization: string;
  readonly remoteAddress: string;
}

export interface ConfigAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON; absent: an empty answer. */
  readonly body?: string;
}

export interface ListenOptions {
  readonly address: string;
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string };
  /** Connections of other addresses are closed before their handshake. */
  readonly admits: (remoteAddress: string) => boolean;
  readonly handle: (request: ConfigRequest) => Promise<ConfigAnswer>;
}

export interface ConfigListener {
  readonly port: number;
  updateTls(tls: ListenOptions['tls']): void;
  close(): Promise<void>;
}
