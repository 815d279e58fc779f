/** Ports of cluster DNS to the host. */
import type { DnsRecord } from './core/index.ts';

export type { DnsRecord };

/** Handles one message. Returns undefined to send no response. `source` is the client's address. */
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
  /** Listens on UDP and TCP. Rejects when the address or the port is not available. */
  listen(address: string, port: number, handler: DnsHandler): Promise<DnsListener>;
}

export interface UpstreamServer {
  readonly address: string;
  readonly port: number;
}

export interface UpstreamExchange {
  /**
   * Sends a query from a separate source port and resolves with the first message that `accept` accepts. Rejects
   * immediately if there is no route to the server.
   */
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
  /** Encodes a record without its owner name: type, class, TTL, length and data. */
  encodeRecord(record: DnsRecord): Uint8Array;
  /** Encodes a name without compression. */
  encodeName(name: string): Uint8Array;
  /** Answers of a message, each with an uncompressed owner name. Throws for an invalid message. */
  answersOf(message: Uint8Array): readonly Uint8Array[];
  /** The message without its OPT record. Throws for an invalid message. */
  withoutOpt(message: Uint8Array): Uint8Array;
}

/** Addresses that this host binds only for its DNS server. */
export interface ServiceLink {
  bind(addresses: readonly string[]): Promise<void>;
  /** Whether the link has all of the addresses. */
  isBound(addresses: readonly string[]): Promise<boolean>;
  remove(): Promise<void>;
}
