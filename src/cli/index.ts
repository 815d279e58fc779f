/**
 * The command line: selects and runs a command. Exit codes: 0 success, 1 failure, 2 usage error. An error is printed as
 * one line.
 */
import { parseArgs } from 'node:util';
import { messageOf } from '../base/errors.ts';
import { nearest } from '../base/text/nearest-word.ts';
import { printable } from '../base/text/printable.ts';
import {
  COMMON_FLAGS,
  type Command,
  type CommandGroup,
  type FlagValues,
  type Output,
  toParseArgs,
  UsageError,
} from './command.ts';
import { helpOf, listing, usageOf } from './help.ts';
import { CLIENT_VERBS, type Invocation, isClientCall, linkOf } from './invocation.ts';
import { checkFormat, OUTPUT_FLAG } from './printers.ts';
import { progressOf } from './progress.ts';
import { withoutSystemErrors } from './system-errors.ts';

/**
 * Commands with a separate bundle, so that a long-running process does not keep the sources of other commands in
 * memory. The table of commands is not part of these bundles.
 */
const OWN: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import('./commands/processes/run.ts')).runCommand,
  etcd: async () => (await import('./commands/processes/etcd.ts')).etcdCommand,
  api: async () => (await import('./commands/processes/api.ts')).apiCommand,
  controllers: async () => (await import('./commands/processes/controllers.ts')).controllersCommand,
};

export interface MainOptions extends Invocation {
  /** Output of the command. Default: stdout and stderr of the process. */
  readonly out?: Output;
}

/** Runs one command and returns the exit code; never rejects. */
export async function main(options: MainOptions): Promise<number> {
  const out = options.out ?? processOutput;
  const link = linkOf(options);
  const linked = link?.command;
  const argv = link === undefined ? [...options.argv] : [link.command, ...link.argv];
  const verbose = argv.includes('--verbose');
  try {
    if (isClientCall(argv)) {
      const { runClient } = await import('./commands/kubectl.ts');
      return await runClient(clientArguments(argv), linked ?? 'hyperedge');
    }
    if (argv[0] === '__complete') {
      const { runComplete } = await import('./commands/complete.ts');
      return await runComplete(argv.slice(1), out);
    }
    if (linked === 'etcd')
      return await runCommand((await import('./commands/processes/etcd.ts')).linkedEtcdCommand, argv.slice(1), out);
    if (linked === 'api')
      return await runCommand((await import('./commands/processes/api.ts')).linkedApiCommand, argv.slice(1), out);
    return await dispatch(argv, out);
  } catch (error) {
    const usage = error instanceof UsageError;
    const name = linked === 'etcd' || linked === 'api' ? (link?.name ?? linked) : 'hyperedge';
    out.stderr(`${name}: ${printable(withoutSystemErrors(messageOf(error).replaceAll(/\s*\n\s*/g, ' ')))}\n`);
    if (verbose && error instanceof Error && error.stack !== undefined) out.stderr(`${stackOf(error)}\n`);
    return usage ? 2 : 1;
  }
}

async function dispatch(argv: readonly string[], out: Output): Promise<number> {
  const [first = '', second = ''] = argv;
  if (first === '--version') return dispatch(['version'], out);
  if (Object.hasOwn(OWN, first)) {
    const own = await (OWN[first] as () => Promise<Command>)();
    return runCommand(own, argv.slice(1), out);
  }
  if (first === '') {
    await dispatch(['help'], { stdout: out.stderr, stderr: out.stderr });
    return 2;
  }
  if (first === '--help' || first === '-h') return dispatch(['help'], out);
  const { COMMAND_GROUPS, COMMANDS } = await import('./commands/table.ts');
  const command =
    COMMANDS.find(({ name }) => name === `${first} ${second}`) ?? COMMANDS.find(({ name }) => name === first);
  if (command !== undefined)
    return runCommand(command, argv.slice(command.name.split(' ').length), out, COMMAND_GROUPS);
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${first} `));
  if (group.length > 0 && (second === '' || second.startsWith('-'))) {
    const isHelp = second === '--help' || second === '-h';
    (isHelp ? out.stdout : out.stderr)(listing(group));
    return isHelp ? 0 : 2;
  }
  const word = group.length > 0 ? `${first} ${second}` : first;
  const shown = COMMANDS.filter(({ hidden }) => !hidden).map(({ name }) => name);
  const firsts = [...shown.map((name) => name.split(' ')[0] ?? ''), ...CLIENT_VERBS];
  throw unknown('command', word, nearest(word, group.length > 0 ? shown : firsts), 'hyperedge --help');
}

/** Error for an unknown word. The text refers to the help only if no known word is similar. */
const unknown = (what: string, word: string, meant: string | undefined, where: string): UsageError =>
  new UsageError(`unknown ${what} "${word}"${meant === undefined ? `: see ${where}` : `; did you mean ${meant}?`}`);

function clientArguments(argv: readonly string[]): readonly string[] {
  if (argv[0] === 'kubectl') return argv.slice(1);
  return argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv;
}

async function runCommand(
  command: Command,
  argv: readonly string[],
  out: Output,
  table: readonly CommandGroup[] = [],
): Promise<number> {
  if (command.arguments === 'own')
    return command.run({ flags: {}, positionals: argv, table, out, progress: progressFor({}, out) });
  const flags = { ...command.flags, ...COMMON_FLAGS };
  let parsed: { values: Record<string, string | boolean | (string | boolean)[] | undefined>; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...argv], options: toParseArgs(flags), allowPositionals: true, strict: true });
  } catch (error) {
    const [, dashes = '', flag = ''] = /^Unknown option '(--?)([^']*)'/.exec(messageOf(error)) ?? [];
    const meant = dashes === '--' ? nearest(flag, Object.keys(flags)) : undefined;
    if (dashes !== '')
      throw unknown(
        'flag',
        `${dashes}${flag}`,
        meant === undefined ? undefined : `--${meant}`,
        `hyperedge ${command.name} --help`,
      );
    // Only the first sentence of Node's message is used, which names the flag. The rest is advice about quoting.
    throw new UsageError(`${messageOf(error).split('. ')[0]}: see hyperedge ${command.name} --help`);
  }
  if (parsed.values['help'] === true) {
    out.stdout(helpOf(command));
    return 0;
  }
  const [fewest, most] = command.arguments;
  if (parsed.positionals.length < fewest || parsed.positionals.length > most) {
    throw new UsageError(`usage: ${usageOf(command)}`);
  }
  const { values: given, positionals } = parsed;
  if (command.flags['output'] === OUTPUT_FLAG) checkFormat(given);
  return command.run({ flags: given, positionals, table, out, progress: progressFor(given, out) });
}

const progressFor = (flags: FlagValues, out: Output) => progressOf(flags, out, out === processOutput);

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by: ${stackOf(error.cause)}` : '';
  return `${error.stack ?? error.message}${cause}`;
}

const processOutput: Output = {
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
};
