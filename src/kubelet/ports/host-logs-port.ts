/** Logs of the host: files below its log directory, and the journal. Implemented by `src/kubelet/io/host-facts`. */
import type { Readable } from 'node:stream';

/** Options of journalctl. Times are RFC 3339 or any format that journalctl accepts. */
export interface JournalQuery {
  readonly units: readonly string[];
  readonly since?: string;
  readonly until?: string;
  /** 0 selects the current boot, -1 the boot before it. */
  readonly boot?: number;
  /** Number of lines from the end. */
  readonly tail?: number;
  readonly pattern?: string;
  readonly caseSensitive?: boolean;
  readonly output?: string;
}

/** Logs of this host, and the systemd units of components that have no unit of their own: `kubelet` → `hyperedge`. */
export interface HostLogSource {
  readonly logs: HostLogs;
  readonly units: ReadonlyMap<string, string>;
}

export interface HostLogs {
  /**
   * Names in a directory; names of directories end with a slash. Undefined when the path is not a directory inside the
   * log directory.
   */
  names(path: string): Promise<readonly string[] | undefined>;
  /** Returns undefined when the path is not a regular file inside the log directory. */
  open(path: string): Promise<Readable | undefined>;
  /** Stream of journal lines. An error of journalctl becomes an error of the stream. */
  journal(query: JournalQuery, signal: AbortSignal): Readable;
}
