/** What cluster DNS needs of the host. */
import type { DnsRecord } from '../../core/dns/index.ts';

export type { DnsRecord };

/** Answers one message; undefined: with nothing. `source` is the client's address. */
export type DnsHandler = (
  message: Uint8Array,
  source: string,
  transport: 'udp' | 'tcp',
) => Uint8Array | undefined | Promise<Uint8Array | undefined>;

export interface DnsListener {
  readonly port: number;
  close(): Promise<void>;
}

export interface DnsSockets {
  /** UDP and TCP. Rejects when the address or the port cannot be had. */
  listen(address: string, port: number, handler: DnsHandler): Promise<DnsListener>;
}

export interface UpstreamServer {
  readonly address: string;
  readonly port: number;
}

export interface UpstreamExchange {
  /** The first message that `accept` takes, from a source port of its own. Rejects at once without a route. */
  exchange(
    server: UpstreamServer,
    message: Uint8Array,
    options: {
      readonly transport: 'udp' | 'tcp';
      readonly timeoutMs: number;
      readonly accept: (message: Uint8Array) => boolean;
    },
  ): Promise<Uint8Array>;
}

export interface DnsCodec {
  /** A record without its owner's name: type, class, TTL, length and data. */
  encodeRecord(record: DnsRecord): Uint8Array;
  /** Uncompressed. */
  encodeName(name: string): Uint8Array;
  /** The answers of a message as owner and record, uncompressed. Throws for what does not parse. */
  answersOf(message: Uint8Array): readonly Uint8Array[];
  /** The message without its OPT record. Throws for what does not parse. */
  withoutOpt(message: Uint8Array): Uint8Array;
}

/** Addresses that this host holds for its name server alone. */
export interface ServiceLink {
  bind(addresses: readonly string[]): Promise<void>;
  /** True when the link has all of them. */
  isBound(addresses: readonly string[]): Promise<boolean>;
  /** Removes the link with its addresses. */
  remove(): Promise<void>;
}
