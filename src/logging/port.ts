/** Log records, receivers and settings of log forwarding. */

/** One line of a log. All texts are valid Unicode; a value that does not apply is empty. */
export interface LogRecord {
  /** Time of the line (RFC 3339), with up to nine digits for fractions of a second. */
  readonly time: string;
  readonly text: string;
  readonly severity: 'error' | 'warning' | 'info';
  readonly stream: 'stdout' | 'stderr' | '';
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly container: string;
  /** Name of this product's component: `host`, `api`, `controllers` or `etcd`; empty for other containers. */
  readonly component: string;
}

export const FORWARD_TYPES = ['syslog', 'otlp', 'loki'] as const;

export interface ForwardSettings {
  readonly type: (typeof FORWARD_TYPES)[number];
  readonly url: string;
  /** PEM file with CA certificates that are trusted in addition to those of the system. */
  readonly caFile: string | undefined;
  /** File with one HTTP header per line. Other users must not have access to it. */
  readonly headersFile: string | undefined;
  /** Maximum size of the records that wait for the receiver. They are stored on tmpfs. */
  readonly bufferBytes: number;
  /** Maximum rate at which the logs of one container are read. */
  readonly containerBytesPerSecond: number;
}

export type SendResult =
  | { readonly kind: 'sent'; readonly rejected: number }
  /** The receiver will never accept these records, so they are dropped. */
  | { readonly kind: 'refused'; readonly problem: string }
  | { readonly kind: 'retry'; readonly problem: string; readonly afterMs?: number };

export interface Receiver {
  /** Sends the records. Never rejects. */
  send(records: readonly LogRecord[], signal: AbortSignal): Promise<SendResult>;
  close(): void;
}

/** Read positions in bytes, by key of the file. */
export type Offsets = Readonly<Record<string, number>>;

export interface Batch {
  readonly id: string;
  readonly bytes: number;
  readonly count: number;
}

/** Buffer of batches that wait for the receiver. The oldest batch is sent first. */
export interface Spool {
  /** Read positions up to which records have been stored. */
  readonly offsets: Offsets;
  /**
   * Stores records with the read positions after them. Returns the number of older records that were dropped to make
   * room.
   */
  append(records: readonly LogRecord[], offsets: Offsets): Promise<number>;
  /** Removes positions of files that no longer exist. */
  retainOffsets(isPresent: (file: string) => boolean): Promise<void>;
  oldest(): Promise<{ readonly batch: Batch; readonly records: readonly LogRecord[] } | undefined>;
  remove(batch: Batch): Promise<void>;
  /** Memory that all batches use, in bytes. */
  readonly bytes: number;
  readonly maxBytes: number;
}

/** Source of log records that is read incrementally. */
export interface LogSource {
  /**
   * Reads new lines until `hasRoom` returns false. `emit` stores a batch of records with the read positions after them.
   */
  poll(emit: (records: readonly LogRecord[], offsets: Offsets) => Promise<void>, hasRoom: () => boolean): Promise<void>;
  /** Whether the file with this key still exists, so that its read position is needed. */
  isPresent(file: string): boolean;
  close(): Promise<void>;
}
