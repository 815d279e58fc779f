/** Runs a verb: arguments, connection and errors. Exit codes and messages are those of kubectl. */
import { ApiError } from '../api/meta/status.ts';
import { nearest } from '../base/text/nearest-word.ts';
import { printable } from '../base/text/printable.ts';
import { type ConnectionError, isConnectionError } from '../client/errors.ts';
import { ClientError } from './core/errors.ts';
import { type FlagSpecs, parseArguments } from './core/flags.ts';
import { flagLines, verbHelp, verbList } from './help.ts';
import type { System, Terminal, Verb, VerbContext } from './port.ts';
import { Session } from './session.ts';

/** Flags that every verb has. */
export const GLOBAL_FLAGS: FlagSpecs = {
  help: { type: 'bool', short: 'h', help: 'show the help of the verb' },
  namespace: { type: 'string', short: 'n', value: 'NAME', help: 'namespace of the request' },
  kubeconfig: { type: 'string', value: 'FILE', help: 'default: $KUBECONFIG, ~/.kube/config, the file of this host' },
  context: { type: 'string', value: 'NAME', help: 'context of the kubeconfig' },
  cluster: { type: 'string', value: 'NAME', help: 'cluster of the kubeconfig' },
  user: { type: 'string', value: 'NAME', help: 'user of the kubeconfig' },
  server: { type: 'string', short: 's', value: 'URL', help: 'address of the API server' },
  token: { type: 'string', value: 'TOKEN', help: 'bearer token' },
  as: { type: 'string', value: 'USER', help: 'user to impersonate' },
  'as-group': { type: 'list', value: 'GROUP', help: 'group to impersonate; may be repeated' },
  'as-uid': { type: 'string', value: 'UID', help: 'uid to impersonate' },
  'certificate-authority': { type: 'string', value: 'FILE', help: 'authority of the API server' },
  'client-certificate': { type: 'string', value: 'FILE', help: 'client certificate' },
  'client-key': { type: 'string', value: 'FILE', help: 'key of the client certificate' },
  'insecure-skip-tls-verify': { type: 'bool', help: 'do not check the certificate of the server' },
  'tls-server-name': { type: 'string', value: 'NAME', help: 'name to expect in the certificate of the server' },
  'request-timeout': { type: 'string', value: 'TIME', help: 'time limit of a request, such as 30s; 0 is none' },
  'warnings-as-errors': { type: 'bool', help: 'exit with 1 after a warning of the server' },
  v: { type: 'string', short: 'v', value: 'LEVEL', help: 'accepted for compatibility' },
};

export interface RunOptions {
  readonly verbs: readonly Verb[];
  /** Name in messages: `kubectl` or `hyperedge`. */
  readonly program: string;
  readonly argv: readonly string[];
  readonly io: Terminal;
  readonly system: System;
  readonly signal: AbortSignal;
}

/** Runs the verb in `argv` and resolves with the exit code. Never rejects. */
export async function runVerb(options: RunOptions): Promise<number> {
  const { argv, io, program } = options;
  const chosen = chooseVerb(options.verbs, argv);
  if (chosen === undefined) return runWithoutVerb(options);
  const { verb, words, rest, after } = chosen;
  const name = words.join(' ');
  const isBare = after.length === 0;
  const isHelp = (isBare && verb.runsBare !== true) || after[0] === '--help' || after[0] === '-h';
  if (
    verb.load === undefined ||
    (verb.verbs !== undefined && (isHelp || (!isBare && after[0]?.startsWith('-') !== true)))
  ) {
    if (isHelp) io.out(verbHelp(verb, words, program));
    else
      io.err(
        `error: unknown command "${after[0] ?? ''}"${suggestion(after[0] ?? '', verb.verbs ?? [])}\n` +
          `See '${program} ${name} -h' for help and examples\n`,
      );
    return isHelp ? 0 : 1;
  }
  try {
    const { flags, positionals, dashAt } = parseOrExplain(verb, rest, `${program} ${name}`);
    if (flags.bool('help')) {
      io.out(verbHelp(verb, words, program));
      return 0;
    }
    const { run } = await verb.load();
    const warnings = new Set<string>();
    const code = await run({
      flags,
      args: positionals,
      dashAt,
      io: { ...io, out: io.out, err: io.err },
      system: connected(options.system, verb.flags, warnings),
      signal: options.signal,
      program,
      verbs: options.verbs,
    });
    if (code === 0 && warnings.size > 0 && flags.bool('warnings-as-errors')) {
      io.err(`error: ${warnings.size} warning${warnings.size === 1 ? '' : 's'} received\n`);
      return 1;
    }
    return code;
  } catch (error) {
    if (options.signal.aborted) return 130;
    io.err(`${errorLine(error)}\n`);
    if (error instanceof ClientError && error.usage) io.err(`See '${program} ${name} -h' for help and examples\n`);
    return error instanceof ClientError ? error.exitCode : 1;
  }
}

/** Shows the requested help, runs a plug-in, or reports an unknown command. */
async function runWithoutVerb({ argv, io, program, system, verbs }: RunOptions): Promise<number> {
  const [first] = argv;
  if (first === 'options') {
    io.out(`Flags of all verbs:\n${flagLines(GLOBAL_FLAGS)}`);
    return 0;
  }
  if (first === undefined || first === 'help' || first === '--help' || first === '-h') {
    io.out(verbList(verbs, program));
    return 0;
  }
  const { runPlugin } = await import('./plugins.ts');
  const code = await runPlugin(system, argv);
  if (code !== undefined) return code;
  const word = argv.find((each, index) => !each.startsWith('-') && argv[index - 1] !== '--kubeconfig') ?? first;
  io.err(`error: unknown command "${word}" for "${program}"${suggestion(word, verbs)}\n`);
  return 1;
}

function suggestion(word: string, verbs: readonly Verb[]): string {
  const meant = nearest(
    word,
    verbs.map(({ name }) => name),
  );
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

/**
 * Adds warnings to `warnings` and reports each text once.
 *
 * A verb may declare a flag with the name of a global flag, such as `--user`. Its
 * value is hidden from the connection, which would use it as the global flag.
 */
function connected(system: System, own: FlagSpecs, warnings: Set<string>): System {
  const hidden = Object.keys(own).filter((name) => Object.hasOwn(GLOBAL_FLAGS, name));
  return {
    ...system,
    connect: (options) =>
      system.connect({
        ...options,
        flags: options.flags.without(hidden),
        onWarning: (text) => {
          if (warnings.has(text)) return;
          warnings.add(text);
          options.onWarning(text);
        },
      }),
  };
}

function parseOrExplain(verb: Verb, argv: readonly string[], name: string): ReturnType<typeof parseArguments> {
  try {
    return parseArguments({ ...GLOBAL_FLAGS, ...verb.flags }, argv);
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    const [, flag] = /^unknown flag: --(.*)$/s.exec(error.message) ?? [];
    const meant = flag === undefined ? undefined : nearest(flag, Object.keys({ ...GLOBAL_FLAGS, ...verb.flags }));
    const hint = meant === undefined ? '' : `; did you mean --${meant}?`;
    throw new ClientError(`${error.message}${hint}\nSee '${name} --help' for usage.`);
  }
}

interface Choice {
  readonly verb: Verb;
  readonly words: readonly string[];
  /** Arguments of the verb, including global flags that precede the verb. */
  readonly rest: readonly string[];
  /** Arguments that follow the verb. */
  readonly after: readonly string[];
}

/** Finds the verb at the start of the arguments. Global flags may precede the verb, as in `kubectl -n a get pods`. */
export function chooseVerb(verbs: readonly Verb[], argv: readonly string[]): Choice | undefined {
  const leading: string[] = [];
  let at = 0;
  while (argv[at]?.startsWith('-') === true) {
    const flag = argv[at] as string;
    const name = flag.startsWith('--')
      ? flag.slice(2)
      : Object.keys(GLOBAL_FLAGS).find((key) => GLOBAL_FLAGS[key]?.short === flag[1]);
    const spec = name === undefined ? undefined : GLOBAL_FLAGS[name];
    const takesNext =
      spec !== undefined && spec.type !== 'bool' && !flag.includes('=') && (flag.startsWith('--') || flag.length === 2);
    leading.push(...argv.slice(at, at + (takesNext ? 2 : 1)));
    at += takesNext ? 2 : 1;
  }
  let among: readonly Verb[] | undefined = verbs;
  let verb: Verb | undefined;
  const words: string[] = [];
  while (among !== undefined) {
    const next: Verb | undefined = among.find(({ name }) => name === argv[at]);
    if (next === undefined) break;
    verb = next;
    words.push(next.name);
    among = next.verbs;
    at += 1;
  }
  return verb === undefined ? undefined : { verb, words, rest: [...leading, ...argv.slice(at)], after: argv.slice(at) };
}

/** Connects, runs `use` and closes the connection. */
export async function withSession<T>(context: VerbContext, use: (session: Session) => Promise<T>): Promise<T> {
  const connection = await context.system.connect({
    flags: context.flags,
    onWarning: (text) => context.io.err(`Warning: ${printable(text)}\n`),
  });
  try {
    return await use(new Session(context, connection));
  } finally {
    connection.close();
  }
}

/** The line that kubectl prints for an error, with escapes for control characters. */
export const errorLine = (error: unknown, when = ''): string => printable(textOf(error, when));

function textOf(error: unknown, when: string): string {
  const prefix = when === '' ? '' : `${when}: `;
  if (isConnectionError(error)) return prefix === '' ? connectionLine(error) : `error: ${prefix}${error.message}`;
  if (error instanceof ApiError) {
    const reason = error.reason === 'Unknown' ? '' : ` (${error.reason})`;
    if (error.reason === 'Invalid' && when === '') return invalidLines(error);
    if (error.reason === 'Unauthorized') return 'error: You must be logged in to the server (Unauthorized)';
    return `Error from server${reason}: ${prefix}${error.message}`;
  }
  const label = error instanceof ClientError && error.isPlain ? '' : 'error: ';
  return `${label}${prefix}${error instanceof Error ? error.message : String(error)}`;
}

/** Error message of kubectl for a server that cannot be reached. */
function connectionLine(error: ConnectionError): string {
  const { cause, message } = error;
  const [, host = ''] = /^https?:\/\/([^/]+?)\/?: /.exec(message) ?? [];
  if (host !== '' && cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED')
    return `The connection to the server ${host} was refused - did you specify the right host or port?`;
  return `Unable to connect to the server: ${message}`;
}

function invalidLines(error: ApiError): string {
  const { kind = '', name = '' } = error.details ?? {};
  const what = kind === '' && name === '' ? 'request' : `${kind} "${name}"`;
  const causes = [
    ...new Set((error.details?.causes ?? []).map(({ field = '', message = '' }) => `${field}: ${message}`)),
  ];
  if (causes.length === 0) return `The ${what} is invalid: ${error.message}`;
  const [only] = causes;
  if (causes.length === 1) return `The ${what} is invalid: ${only ?? ''}`;
  return `The ${what} is invalid: \n${causes.map((each) => `* ${each}`).join('\n')}`;
}
