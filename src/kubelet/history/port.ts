/** Ports of the usage history to the host. */

export interface Traffic {
  /** Bytes since the interface was created. The direction is that of the host or pod that uses the interface. */
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/** Counters and gauges of the host. A field is undefined if the host does not report the value. */
export interface HostCounters {
  /**
   * Traffic of interfaces with a hardware device. If there are none: of all interfaces except loopback and those of
   * pods.
   */
  readonly network: Traffic;
  /** Traffic of pods by address, for networks that route each address of a pod to its own interface. */
  readonly pods: ReadonlyMap<string, Traffic>;
  readonly diskReadBytes: number | undefined;
  readonly diskWrittenBytes: number | undefined;
  readonly flashWrittenBytes: number | undefined;
  readonly pressure: Pressure;
  readonly celsius: number | undefined;
  /** Whether heat or low voltage has slowed the processor since the last call. */
  readonly isThrottled: boolean | undefined;
}

/** Total seconds in which at least one task waited for the resource. Source: kernel documentation, accounting/psi. */
export interface Pressure {
  readonly cpuSeconds: number | undefined;
  readonly memorySeconds: number | undefined;
  readonly ioSeconds: number | undefined;
}

/**
 * Counters of the API server and the store on this host. A field is undefined if the component does not run here or
 * does not respond.
 */
export interface ComponentCounters {
  /** Requests to the API server, and those of them that failed with a status 5xx. */
  readonly api: { readonly requests: number; readonly errors: number } | undefined;
  /** Flushes of the store's log, and the seconds that they took. */
  readonly store: { readonly flushes: number; readonly flushSeconds: number } | undefined;
  /** Whether the store member on this host did not respond. */
  readonly isStoreSilent?: boolean;
}

export interface HistoryHost {
  counters(): Promise<HostCounters>;
  components(): Promise<ComponentCounters>;
}

/** Files of the history, compressed and with a checksum. */
export interface HistoryFiles {
  /** Names of the history files; empty if the directory does not exist. */
  list(): Promise<readonly string[]>;
  /** Rejects for a file that is damaged, incomplete, too large or of an unknown format. */
  read(name: string): Promise<Uint8Array>;
  /** Replaces the file atomically and durably. */
  replace(name: string, content: Uint8Array): Promise<void>;
  remove(name: string): Promise<void>;
}
