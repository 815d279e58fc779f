/** Log records, receivers and settings of log forwarding. */

/** One line of a log. Texts are valid Unicode; absent values are empty. */
export interface LogRecord {
  /** RFC 3339 with up to nine digits of a second. */
  readonly time: string;
  readonly text: string;
  readonly severity: 'error' | 'warning' | 'info';
  readonly stream: 'stdout' | 'stderr' | '';
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly container: string;
  /** `host`, `api`, `controllers` or `etcd`; empty for other containers. */
  readonly component: string;
}

export const FORWARD_TYPES = ['syslog', 'otlp', 'loki'] as const;

export interface ForwardSettings {
  readonly type: (typeof FORWARD_TYPES)[number];
  readonly url: string;
  /** PEM file with authorities besides those of the system. */
  readonly caFile: string | undefined;
  /** Private file with one HTTP header per line. */
  readonly headersFile: string | undefined;
  /** Maximum size of records that wait for the receiver, on tmpfs. */
  readonly bufferBytes: number;
  /** Maximum rate at which the log of one container is read. */
  readonly containerBytesPerSecond: number;
}

export type SendResult =
  | { readonly kind: 'sent'; readonly rejected: number }
  /** The receiver will never accept these records. */
  | { readonly kind: 'refused'; readonly problem: string }
  | { readonly kind: 'retry'; readonly problem: string; readonly afterMs?: number };

export interface Receiver {
  /** Never rejects. */
  send(records: readonly LogRecord[], signal: AbortSignal): Promise<SendResult>;
  close(): void;
}

/** Read positions by file. */
export type Offsets = Readonly<Record<string, number>>;

export interface Batch {
  readonly id: string;
  readonly bytes: number;
  readonly count: number;
}

/** Batches that wait for the receiver, oldest first. */
export interface Spool {
  /** Read positions that the stored batches have reached. */
  readonly offsets: Offsets;
  /** Stores records with the read positions after them. Returns the number of records that were dropped for them. */
  append(records: readonly LogRecord[], offsets: Offsets): Promise<number>;
  /** Removes positions of files that no longer exist. */
  retainOffsets(isPresent: (file: string) => boolean): Promise<void>;
  oldest(): Promise<{ readonly batch: Batch; readonly records: readonly LogRecord[] } | undefined>;
  remove(batch: Batch): Promise<void>;
  /** Memory that the batches use. */
  readonly bytes: number;
  readonly maxBytes: number;
}

/** Reads logs incrementally. */
export interface LogSource {
  /**
   * Reads new lines in batches, until `hasRoom` is false. `emit` stores a batch with the read positions after it.
   */
  poll(emit: (records: readonly LogRecord[], offsets: Offsets) => Promise<void>, hasRoom: () => boolean): Promise<void>;
  /** Whether a file of a read position still exists. */
  isPresent(file: string): boolean;
  close(): Promise<void>;
}
