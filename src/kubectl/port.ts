/** Contracts of the built-in client: a verb, its context, and the system around it. */
import type { Agent } from 'node:http';
import type { ClientCredentials } from '../client/credentials.ts';
import type { FlagSpecs, Flags } from './core/flags.ts';

/** A verb such as `get`: data for help, completion and man pages, and the code that runs it. */
export interface Verb {
  readonly name: string;
  /** Heading in the list of verbs. */
  readonly group: 'basic' | 'deploy' | 'cluster' | 'debug' | 'advanced' | 'settings' | 'other';
  readonly summary: string;
  /** Arguments after the verb, for example `(TYPE NAME | TYPE/NAME …)`. */
  readonly usage: string;
  readonly flags: FlagSpecs;
  readonly examples?: readonly (readonly [text: string, command: string])[];
  /**
   * Sub-verbs, such as `rollout status`. The code of a verb with sub-verbs runs if it has one and flags come before the
   * sub-verb, as in `top --history 24h node`.
   */
  readonly verbs?: readonly Verb[];
  /** The code of a verb with sub-verbs also runs without arguments, as in `cluster-info`. */
  readonly runsBare?: boolean;
  load?(): Promise<{ readonly run: RunVerb }>;
}

/** Resolves with the exit code. Throws ClientError or ApiError. */
export type RunVerb = (context: VerbContext) => Promise<number>;

export interface VerbContext {
  readonly flags: Flags;
  readonly args: readonly string[];
  /** Number of arguments before `--`; undefined without `--`. */
  readonly dashAt: number | undefined;
  readonly io: Terminal;
  readonly system: System;
  /** Aborts on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  /** Name in messages: `kubectl` or `hyperedge`. */
  readonly program: string;
  readonly verbs: readonly Verb[];
}

export interface Terminal {
  out(text: string | Uint8Array): void;
  err(text: string): void;
  /** Resolves when the reader of stdout has caught up; undefined if it already has. */
  drained(): Promise<unknown> | undefined;
  /** All of stdin. */
  readAll(): Promise<string>;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly isInputTerminal: boolean;
  readonly isOutputTerminal: boolean;
  /** Columns and rows; undefined if stdout is no terminal. */
  size(): { readonly columns: number; readonly rows: number } | undefined;
  onResize(listener: () => void): () => void;
  /** Passes keys on without echo. Returns the function that restores the terminal. */
  raw(): () => void;
}

/** Files, time and processes that verbs need. */
export interface System {
  now(): number;
  monotonicMs(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  readFile(path: string): Promise<Uint8Array>;
  writeFile(path: string, bytes: Uint8Array | string): Promise<void>;
  /** Appends to a file, or replaces it with `truncate`. Missing directories are created. */
  appendFile(path: string, bytes: Uint8Array | string, options: { readonly truncate: boolean }): Promise<void>;
  exists(path: string): Promise<boolean>;
  absolutePath(path: string): string;
  /** The absolute path without links. Rejects if the file is missing. */
  realPath(path: string): Promise<string>;
  /** Runs a program with this terminal and these additional variables. Resolves with its exit code. */
  runProgram(file: string, args: readonly string[], variables?: Readonly<Record<string, string>>): Promise<number>;
  /**
   * Writes files below two directories with these names and runs `diff` or another program with both. Resolves with its
   * exit code.
   */
  compareFiles(
    program: string,
    args: readonly string[],
    directories: Readonly<Record<string, ReadonlyMap<string, string>>>,
  ): Promise<number>;
  /** Executables on PATH whose name starts so, in order; directories that cannot be read are reported. */
  programs(prefix: string, onUnreadable: (directory: string, reason: string) => void): Promise<readonly string[]>;
  /** Manifest files of a directory in order, or the path itself. */
  manifestFiles(path: string, recursive: boolean): Promise<readonly string[]>;
  /** Names below a directory, for example for `create configmap --from-file`. */
  filesIn(path: string): Promise<readonly string[] | undefined>;
  fetchText(url: string): Promise<string>;
  /** Opens the text in the user's editor; resolves with the edited text and the file that holds it. */
  edit(name: string, text: string): Promise<{ readonly text: string; readonly path: string }>;
  /** Connects to the cluster as the flags and the kubeconfig require. */
  connect(options: ConnectOptions): Promise<Connection>;
  /** The merged kubeconfig. */
  kubeconfig(path: string | undefined): Promise<KubeconfigFile>;
  /** Text of a cache file that is younger than `maxAgeMs`; undefined without one. */
  readCache(name: string, maxAgeMs: number): Promise<string | undefined>;
  /** Failures are ignored: the cache only saves time. */
  writeCache(name: string, text: string): Promise<void>;
  environment(name: string): string | undefined;
  /** Output of `tar`. */
  tar(args: readonly string[]): AsyncIterable<Uint8Array>;
  /** Unpacks an untrusted archive. */
  unpack(archive: AsyncIterable<Uint8Array>, options: UnpackOptions): Promise<void>;
  /** Listens on local TCP ports; each connection is passed on as a stream of bytes. */
  listen(address: string, port: number, onConnection: (socket: LocalSocket) => void): Promise<LocalListener>;
}

export interface UnpackOptions {
  /** Name that was requested; entries outside of it are refused. */
  readonly member: string;
  /** Path that takes the place of `member`. */
  readonly target: string;
  readonly keepMode: boolean;
  /** Reports a link or a special file, which is not created. */
  readonly onSkip: (type: string, name: string, linkTo: string) => void;
}

export interface LocalSocket {
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves when more may be written. */
  write(bytes: Uint8Array): Promise<void>;
  end(): void;
  destroy(): void;
}

export interface LocalListener {
  readonly port: number;
  close(): void;
}

export interface ApiProxyOptions {
  readonly address: string;
  /** 0 chooses a free port. */
  readonly port: number;
  /** Path of a socket, instead of address and port. */
  readonly unixSocket?: string;
  /** Prefix of paths that are passed on, with slashes at both ends. It is removed unless it begins with `/api`. */
  readonly apiPrefix: string;
  readonly appendServerPath: boolean;
  /** Files that are served below a prefix. */
  readonly www?: { readonly directory: string; readonly prefix: string };
  /** `host` is the header of that name. `path` is decoded and has no prefix. */
  accepts(method: string, host: string, path: string): boolean;
}

export interface KubeconfigFile {
  readonly path: string;
  /** The parsed document, an empty configuration if there is no file. */
  readonly document: Readonly<Record<string, unknown>>;
}

export interface ConnectOptions {
  readonly flags: Flags;
  readonly onWarning: (text: string) => void;
}

export interface RequestOptions {
  /** Default: `application/json`. */
  readonly accept?: string;
  /** Media type of the body. Default: `application/json`. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

/** Requests to one API server. They fail with ApiError, ConnectionError or the reason of the signal. */
export interface Requests {
  /** `path` includes the query. The response is JSON. */
  request<R>(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<R>;
  stream(path: string, options?: RequestOptions): Promise<AsyncIterable<Uint8Array>>;
  close(): void;
}

export interface Connection {
  readonly client: Requests;
  readonly server: string;
  /** Namespace of `--namespace` or of the context; `default` without both. */
  readonly namespace: string;
  /** True if `--namespace` was given. */
  readonly namespaceGiven: boolean;
  credentials(): ClientCredentials;
  /** Headers of impersonation, for streams that do not use the client. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly insecure: boolean;
  readonly tlsServerName: string | undefined;
  /** Agent for streams that do not use the client; undefined without a proxy. */
  readonly agent: Agent | undefined;
  /** Serves the API on a local port, with the credentials of this connection. */
  serve(options: ApiProxyOptions): Promise<LocalListener>;
  close(): void;
}
