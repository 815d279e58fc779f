/**
 * Flags in the syntax of kubectl (github.com/spf13/pflag): flags and arguments in any order, `--name=value`,
 * `--name value`, `-n value`, `-nvalue`, `-n=value`, groups of short flags, and `--` before other arguments.
 */
import { ClientError } from './errors.ts';

export interface FlagSpec {
  /** Type of the value. A flag of type `count` has no value and may be repeated. */
  readonly type: 'bool' | 'string' | 'int' | 'list' | 'count';
  readonly short?: string;
  /** Default value, as text. */
  readonly default?: string;
  /** Value that the flag has when it is given without `=value`. If undefined, the next argument is the value. */
  readonly bare?: string;
  /** Placeholder for the value in help texts. */
  readonly value?: string;
  readonly help: string;
}

export type FlagSpecs = Readonly<Record<string, FlagSpec>>;

export interface ParsedArguments {
  readonly flags: Flags;
  readonly positionals: readonly string[];
  /** Number of positionals before `--`; undefined if the arguments contain no `--`. */
  readonly dashAt: number | undefined;
}

/** Values of flags. Reading a flag that the verb does not declare is a programming error. */
export class Flags {
  readonly #specs: FlagSpecs;
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(specs: FlagSpecs, values: ReadonlyMap<string, readonly string[]>) {
    this.#specs = specs;
    this.#values = values;
  }

  /** True if the user gave the flag. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The last given value; otherwise the default; otherwise an empty string. */
  text(name: string): string {
    return this.#values.get(name)?.at(-1) ?? this.#specs[name]?.default ?? '';
  }

  bool(name: string): boolean {
    return this.text(name) === 'true';
  }

  int(name: string): number {
    return Number(this.text(name) || '0');
  }

  /** All values of a repeatable flag, split at commas. */
  list(name: string): readonly string[] {
    return this.all(name).flatMap((value) => (value === '' ? [] : value.split(',')));
  }

  /** Copy of the flags with the values of some flags replaced. */
  with(values: Readonly<Record<string, string>>): Flags {
    const given = Object.entries(values).map(([name, value]): [string, string[]] => [name, [value]]);
    return new Flags(this.#specs, new Map([...this.#values, ...given]));
  }

  /** Copy of the flags without the values of the named flags. */
  without(names: readonly string[]): Flags {
    if (names.length === 0) return this;
    return new Flags(this.#specs, new Map([...this.#values].filter(([name]) => !names.includes(name))));
  }

  /** All values of a repeatable flag, not split. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }
}

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/** Parses flags and positionals. Throws ClientError with kubectl's message for an unknown flag or an invalid value. */
export function parseArguments(specs: FlagSpecs, argv: readonly string[]): ParsedArguments {
  const values = new Map<string, string[]>();
  const shorts = new Map(
    Object.entries(specs).flatMap(([name, { short }]) => (short === undefined ? [] : [[short, name]])),
  );
  const positionals: string[] = [];
  let dashAt: number | undefined;
  let at = 0;

  const set = (name: string, value: string, shown: string): void => {
    const spec = specs[name] as FlagSpec;
    values.set(name, [
      ...(spec.type === 'list' || spec.type === 'count' ? (values.get(name) ?? []) : []),
      checked(spec, value, shown),
    ]);
  };
  /** Takes the value of a flag from the next argument. */
  const next = (shown: string): string => {
    const value = argv[at];
    if (value === undefined) throw new ClientError(`flag needs an argument: ${shown}`);
    at += 1;
    return value;
  };

  while (at < argv.length) {
    const argument = argv[at] as string;
    at += 1;
    if (argument === '--') {
      dashAt = positionals.length;
      positionals.push(...argv.slice(at));
      break;
    }
    if (argument.startsWith('--')) {
      const [, name = '', value] = /^--([^=]*)(?:=(.*))?$/s.exec(argument) ?? [];
      const spec = specs[name];
      if (spec === undefined) throw new ClientError(`unknown flag: --${name}`);
      set(name, value ?? bareValue(spec) ?? next(`--${name}`), `--${name}`);
      continue;
    }
    if (!argument.startsWith('-') || argument === '-') {
      positionals.push(argument);
      continue;
    }
    for (let rest = argument.slice(1); rest !== ''; ) {
      const letter = rest[0] as string;
      rest = rest.slice(1);
      const name = shorts.get(letter);
      const spec = name === undefined ? undefined : specs[name];
      if (name === undefined || spec === undefined)
        throw new ClientError(`unknown shorthand flag: '${letter}' in ${argument}`);
      const shown = `-${letter}, --${name}`;
      if (rest.startsWith('=')) {
        set(name, rest.slice(1), shown);
        rest = '';
      } else if (bareValue(spec) !== undefined) set(name, bareValue(spec) as string, shown);
      else {
        set(name, rest === '' ? next(`'${letter}' in ${argument}`) : rest, shown);
        rest = '';
      }
    }
  }
  return { flags: new Flags(specs, values), positionals, dashAt };
}

const bareValue = (spec: FlagSpec): string | undefined =>
  spec.bare ?? (spec.type === 'bool' || spec.type === 'count' ? 'true' : undefined);

function checked(spec: FlagSpec, value: string, shown: string): string {
  const invalid = (parser: string): ClientError =>
    new ClientError(
      `invalid argument "${value}" for "${shown}" flag: strconv.${parser}: parsing "${value}": invalid syntax`,
    );
  if (spec.type === 'bool') {
    if (TRUE.has(value)) return 'true';
    if (FALSE.has(value)) return 'false';
    throw invalid('ParseBool');
  }
  if (spec.type === 'int' && !/^[-+]?\d{1,10}$/.test(value)) throw invalid('ParseInt');
  return value;
}
