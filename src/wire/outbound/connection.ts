/** Dispatcher of undici for requests to other networks: through a proxy where one is configured. */
import { Agent, Dispatcher, EnvHttpProxyAgent } from 'undici';
import { certificatesIn, SystemAuthorities } from './authorities.ts';
import { type OutboundSettings, proxyFor } from './proxy-choice.ts';

export interface OutboundTls {
  /** PEM of the authorities that verify the server, instead of the system's authorities. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** False disables the verification of the server's certificate. */
  readonly rejectUnauthorized?: boolean;
}

export interface OutboundOptions {
  readonly connectTimeoutMs: number;
  readonly tls?: OutboundTls;
  readonly headersTimeout?: number;
  readonly bodyTimeout?: number;
  /** Maximum number of connections per origin. */
  readonly connections?: number;
}

const system = new SystemAuthorities();

/** Authorities for a server without configured authorities. */
export const authoritiesOf = ({ authorities = '' }: OutboundSettings): string[] => [
  ...system.all(),
  ...certificatesIn(authorities),
];

/** Selects a proxy or a direct connection for each request. */
export class OutboundDispatcher extends Dispatcher {
  readonly #settings: OutboundSettings;
  readonly #direct: Agent;
  readonly #proxied: EnvHttpProxyAgent | undefined;

  constructor(settings: OutboundSettings, { connectTimeoutMs, tls = {}, ...agent }: OutboundOptions) {
    super();
    this.#settings = settings;
    const secured = { ...tls, ca: tls.ca ?? authoritiesOf(settings) };
    const connect = { timeout: connectTimeoutMs, ...secured };
    this.#direct = new Agent({ ...agent, connect });
    const { httpProxy, httpsProxy } = settings;
    if (httpProxy === undefined && httpsProxy === undefined) return;
    this.#proxied = new EnvHttpProxyAgent({
      ...agent,
      // `proxyFor` decides whether to use the proxy, because undici does not support networks in `noProxy`.
      httpProxy: httpProxy ?? '',
      httpsProxy: httpsProxy ?? '',
      noProxy: '',
      proxyTls: { timeout: connectTimeoutMs, ca: authoritiesOf(settings) },
      requestTls: connect,
    });
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const proxied = proxyFor(new URL(String(options.origin)), this.#settings) !== undefined;
    return (proxied ? this.#proxied : undefined)?.dispatch(options, handler) ?? this.#direct.dispatch(options, handler);
  }

  override async close(): Promise<void> {
    await Promise.all([this.#direct.close(), this.#proxied?.close()]);
  }

  override async destroy(): Promise<void> {
    await Promise.all([this.#direct.destroy(), this.#proxied?.destroy()]);
  }
}
