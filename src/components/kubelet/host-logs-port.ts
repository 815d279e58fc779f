/** Logs of the host: files below its log directory, and the journal. Implemented by `src/io/host`. */
import type { Readable } from 'node:stream';

/** What journalctl is asked for. Times are RFC 3339 or what journalctl accepts. */
export interface JournalQuery {
  readonly units: readonly string[];
  readonly since?: string;
  readonly until?: string;
  /** 0: since the last boot; -1: the boot before. */
  readonly boot?: number;
  /** Number of the last lines. */
  readonly tail?: number;
  readonly pattern?: string;
  readonly caseSensitive?: boolean;
  readonly output?: string;
}

/** Logs of this host, and the units of components that are no services of their own: `kubelet` → `hyperedge`. */
export interface HostLogSource {
  readonly logs: HostLogs;
  readonly units: ReadonlyMap<string, string>;
}

export interface HostLogs {
  /** Names in a directory, those of directories with a slash; undefined: no directory inside the log directory. */
  names(path: string): Promise<readonly string[] | undefined>;
  /** Undefined: no regular file inside the log directory. */
  open(path: string): Promise<Readable | undefined>;
  /** Ends with the journal's lines; an error of journalctl is an error of the stream. */
  journal(query: JournalQuery, signal: AbortSignal): Readable;
}
