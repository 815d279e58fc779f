/** Commands of the executable: flags, usage and errors. */
import type { ParseArgsOptionsConfig } from 'node:util';
import type { Progress } from '../base/command-line/progress.ts';

export type FlagValues = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;

export interface Invocation {
  readonly flags: FlagValues;
  readonly positionals: readonly string[];
  /** All commands; empty in the bundle of a single command. */
  readonly table: readonly CommandGroup[];
  readonly out: Output;
  /** Prints progress to stderr; prints nothing with --quiet. */
  readonly progress: Progress;
}

export interface Output {
  stdout(text: string): void;
  stderr(text: string): void;
}

/** The single description of a command. Help, completion, man pages and the overview in docs/ are generated from it. */
export interface Command {
  /** One or two words, for example `image import`. */
  readonly name: string;
  /** Arguments and important flags after the name, for example `FILE… [--name NAME]`. */
  readonly usage: string;
  /** One line without a full stop. It begins with a verb in lower case. */
  readonly summary: string;
  /** Sentences for `--help` and the man page, without the flags. */
  readonly description?: string;
  /** For commands that only other commands or units start. They are omitted from the overview and from completion. */
  readonly hidden?: true;
  readonly flags: Readonly<Record<string, Flag>>;
  /**
   * Minimum and maximum number of positional arguments. `own`: the command parses its arguments itself, for example
   * etcd's flags.
   */
  readonly arguments: readonly [number, number] | 'own';
  /** Values of the positional arguments for completion. The last entry applies to all further arguments. */
  readonly values?: readonly ValueSource[];
  /** At least one example. The command does not include the name of the program. */
  readonly examples: readonly (readonly [text: string, command: string])[];
  /**
   * Runs the command, whose implementation it loads. Resolves with the exit code: 0 for success, 1 for failure. Throws
   * UsageError for exit code 2.
   */
  run(invocation: Invocation): Promise<number>;
}

export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly Command[];
}

export interface Flag {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** Placeholder for the flag's value in the help text. */
  readonly value?: string;
  /** Values for completion. Default: files for the placeholders FILE and DIR. */
  readonly values?: ValueSource;
  readonly help: string;
}

/** Values that completion offers: fixed words, or the kind of objects that completion looks up. */
export type ValueSource = readonly string[] | ValueKind;

export type ValueKind =
  | 'check'
  | 'command'
  | 'directory'
  | 'file'
  | 'image'
  | 'namespace'
  | 'node'
  | 'operand'
  | 'revision'
  | 'rig'
  | 'rig-claim'
  | 'snapshot';

/** Error of invalid usage. The exit code is 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** Flags that all commands have. */
export const COMMON_FLAGS: Readonly<Record<string, Flag>> = {
  help: { type: 'boolean', short: 'h', help: 'show this help' },
  quiet: { type: 'boolean', short: 'q', help: 'print results and errors only, no progress' },
  verbose: { type: 'boolean', help: 'print the stack of an error' },
};

export const ROOT_FLAG: Flag = {
  type: 'string',
  value: 'DIR',
  help: 'root of all paths (default /)',
};

export function toParseArgs(flags: Readonly<Record<string, Flag>>): ParseArgsOptionsConfig {
  const options: ParseArgsOptionsConfig = {};
  for (const [name, flag] of Object.entries(flags)) {
    options[name] = {
      type: flag.type,
      ...(flag.short === undefined ? {} : { short: flag.short }),
      ...(flag.multiple === true ? { multiple: true } : {}),
    };
  }
  return options;
}

/** Value of a string flag; undefined if it is not set. */
export function stringFlag(flags: FlagValues, name: string): string | undefined {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
}

/**
 * Value of an integer flag; undefined if it is not set. Throws UsageError if the value is not an integer in the range.
 */
export function integerFlag(flags: FlagValues, name: string, min: number, max: number): number | undefined {
  const text = stringFlag(flags, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new UsageError(`--${name}=${text}: give a whole number from ${min} to ${max}`);
  }
  return value;
}

/** Separates this project's flags from those of another program. Throws UsageError for a flag without its value. */
export function takeOwnFlags(
  command: string,
  own: readonly string[],
  argv: readonly string[],
): { readonly flags: FlagValues; readonly rest: readonly string[] } {
  const flags: Record<string, string> = {};
  const rest: string[] = [];
  for (let at = 0; at < argv.length; at += 1) {
    const argument = argv[at] as string;
    const [, name = '', value] = /^--([^=]*)(?:=(.*))?$/s.exec(argument) ?? [];
    if (own.includes(name)) {
      at += value === undefined ? 1 : 0;
      const text = value ?? argv[at];
      if (text === undefined) throw new UsageError(`--${name} needs a value: see hyperedge ${command} --help`);
      flags[name] = text;
    } else if (argument !== '--verbose') rest.push(argument);
  }
  return { flags, rest };
}
