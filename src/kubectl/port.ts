/** Interfaces of the built-in client: a verb, its context, and the system that it runs on. */
import type { Agent } from 'node:http';
import type { CertificateRequestFacts } from '../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import type { ClientCredentials } from '../client/credentials.ts';
import type { FlagSpecs, Flags } from './core/flags.ts';

/** A verb such as `get`: data for help, completion and man pages, and the code that runs it. */
export interface Verb {
  readonly name: string;
  /** Group of the verb in the list of verbs. */
  readonly group: 'basic' | 'deploy' | 'cluster' | 'debug' | 'advanced' | 'settings' | 'other';
  readonly summary: string;
  /** Arguments after the verb, for example `(TYPE NAME | TYPE/NAME …)`. */
  readonly usage: string;
  readonly flags: FlagSpecs;
  readonly examples?: readonly (readonly [text: string, command: string])[];
  /**
   * Sub-verbs, such as `rollout status`. If a verb with sub-verbs has code, the code runs when flags precede the
   * sub-verb, as in `top --history 24h node`.
   */
  readonly verbs?: readonly Verb[];
  /** Whether the code of a verb with sub-verbs also runs without arguments, as in `cluster-info`. */
  readonly runsBare?: boolean;
  load?(): Promise<{ readonly run: RunVerb }>;
}

/** Code of a verb. Resolves with the exit code. Throws ClientError or ApiError. */
export type RunVerb = (context: VerbContext) => Promise<number>;

export interface VerbContext {
  readonly flags: Flags;
  readonly args: readonly string[];
  /** Number of arguments before `--`; undefined if the arguments contain no `--`. */
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
  err(text: string | Uint8Array): void;
  /** Resolves when the reader of stdout has read the buffered output; undefined if nothing is buffered. */
  drained(): Promise<unknown> | undefined;
  /** Reads stdin to its end. */
  readAll(): Promise<string>;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly isInputTerminal: boolean;
  readonly isOutputTerminal: boolean;
  /** Columns and rows; undefined if stdout is not a terminal. */
  size(): { readonly columns: number; readonly rows: number } | undefined;
  onResize(listener: () => void): () => void;
  /** Passes each key on at once and without echo. Returns a function that restores the terminal. */
  raw(): () => void;
}

/** Files, time and processes that verbs need. */
export interface System {
  now(): number;
  monotonicMs(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  readFile(path: string): Promise<Uint8Array>;
  writeFile(path: string, bytes: Uint8Array | string): Promise<void>;
  /** Appends to a file; with `truncate`, replaces its content. Missing directories are created. */
  appendFile(path: string, bytes: Uint8Array | string, options: { readonly truncate: boolean }): Promise<void>;
  exists(path: string): Promise<boolean>;
  absolutePath(path: string): string;
  /** The absolute path without symbolic links. Rejects if the file is missing. */
  realPath(path: string): Promise<string>;
  /** Runs a program with this terminal and additional environment variables. Resolves with its exit code. */
  runProgram(file: string, args: readonly string[], variables?: Readonly<Record<string, string>>): Promise<number>;
  /**
   * Writes the files below two directories with these names, and runs `diff` or another program on both directories.
   * Resolves with its exit code.
   */
  compareFiles(
    program: string,
    args: readonly string[],
    directories: Readonly<Record<string, ReadonlyMap<string, string>>>,
  ): Promise<number>;
  /**
   * Executables on PATH whose names have this prefix, in the order of PATH. Directories that cannot be read are
   * reported.
   */
  programs(prefix: string, onUnreadable: (directory: string, reason: string) => void): Promise<readonly string[]>;
  /** Manifest files of a directory, sorted; the path itself if it is a file. */
  manifestFiles(path: string, recursive: boolean): Promise<readonly string[]>;
  /**
   * Names of the files in a directory, for example for `create configmap --from-file`; undefined if it is not a
   * directory.
   */
  filesIn(path: string): Promise<readonly string[] | undefined>;
  fetchText(url: string): Promise<string>;
  /** Parses a PKCS #10 request. Rejects if it is malformed. */
  parseSigningRequest(pem: string): Promise<CertificateRequestFacts>;
  /** Writes the text to a new private file in the temporary directory; resolves with its path. */
  keep(name: string, text: string): Promise<string>;
  /** Opens the text in the user's editor; resolves with the edited text and the file that holds it. */
  edit(name: string, text: string): Promise<{ readonly text: string; readonly path: string }>;
  /** Connects to the cluster that the flags and the kubeconfig select. */
  connect(options: ConnectOptions): Promise<Connection>;
  /** Reads and merges the kubeconfig files. */
  kubeconfig(path: string | undefined): Promise<KubeconfigFile>;
  /** Text of a cache file that is younger than `maxAgeMs`; undefined if there is none. */
  readCache(name: string, maxAgeMs: number): Promise<string | undefined>;
  /** Writes a cache file. Failures are ignored, because the cache only saves time. */
  writeCache(name: string, text: string): Promise<void>;
  environment(name: string): string | undefined;
  /** Runs `tar` and returns its output. */
  tar(args: readonly string[]): AsyncIterable<Uint8Array>;
  /** Unpacks an archive of a container, which is not trusted. */
  unpack(archive: AsyncIterable<Uint8Array>, options: UnpackOptions): Promise<void>;
  /** Listens on a local TCP port. Each connection is passed to `onConnection` as a stream of bytes. */
  listen(address: string, port: number, onConnection: (socket: LocalSocket) => void): Promise<LocalListener>;
}

export interface UnpackOptions {
  /** Name that was requested. Entries outside of it are rejected. */
  readonly member: string;
  /** Path to which `member` is unpacked. */
  readonly target: string;
  readonly keepMode: boolean;
  /** Called for a link or special file in the archive, which is not created. */
  readonly onSkip: (type: string, name: string, linkTo: string) => void;
}

export interface LocalSocket {
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves when more data may be written. */
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
  /** Port 0 selects a free port. */
  readonly port: number;
  /** Path of a Unix socket, which is used instead of address and port. */
  readonly unixSocket?: string;
  /** Prefix of the paths that are forwarded, with slashes at both ends. It is removed unless it begins with `/api`. */
  readonly apiPrefix: string;
  readonly appendServerPath: boolean;
  /** Files that are served below a prefix. */
  readonly www?: { readonly directory: string; readonly prefix: string };
  /** Whether a request is permitted. `host` is the Host header; `path` is decoded and has no prefix. */
  accepts(method: string, host: string, path: string): boolean;
}

export interface KubeconfigFile {
  readonly path: string;
  /** The parsed document; an empty configuration if there is no file. */
  readonly document: Readonly<Record<string, unknown>>;
}

export interface ConnectOptions {
  readonly flags: Flags;
  readonly onWarning: (text: string) => void;
}

export interface RequestOptions {
  /** Accepted media type. Default: `application/json`. */
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
  /** Sends the text unchanged as the body of a POST request. Resolves with the bytes of the response. */
  postText(path: string, text: string, options?: RequestOptions): Promise<AsyncIterable<Uint8Array>>;
  close(): void;
}

export interface Connection {
  readonly client: Requests;
  readonly server: string;
  /** Namespace of `--namespace`, otherwise that of the context, otherwise `default`. */
  readonly namespace: string;
  /** Whether the flag `--namespace` was given. */
  readonly namespaceGiven: boolean;
  credentials(): ClientCredentials;
  /** Impersonation headers, for streams that are opened without the client. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly insecure: boolean;
  readonly tlsServerName: string | undefined;
  /** Agent for streams that are opened without the client; undefined if no proxy is configured. */
  readonly agent: Agent | undefined;
  /** Serves the API on a local port, with the credentials of this connection. */
  serve(options: ApiProxyOptions): Promise<LocalListener>;
  close(): void;
}
