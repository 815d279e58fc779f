/** Values given by arguments and environment variables, each validated by its flag's kind. */

import { parseDuration } from '../../base/time/duration.ts';
import { parseBoolean, parseInteger, parseUrls } from '../../wire/go-flag-values.ts';
import { type EtcdFlag, FLAGS, type FlagName, flagNamed } from './flags.ts';

export interface Value {
  readonly text: string;
  /** Origin of the value for messages: `--name`, `ETCD_NAME`, `etcd.conf.yaml: name`. */
  readonly label: string;
}

export type Given = ReadonlyMap<FlagName, Value>;

/** A usage error with etcd's exit code: 2 for errors of the flag parser, 1 for later checks. */
export class EtcdUsageProblem extends Error {
  readonly exitCode: 1 | 2;
  constructor(exitCode: 1 | 2, message: string) {
    super(message);
    this.name = 'EtcdUsageProblem';
    this.exitCode = exitCode;
  }
}

/** The problem of a value and the fix; undefined if it is valid. */
export function problemOf(flag: EtcdFlag, text: string): string | undefined {
  if (flag.choices !== undefined && !flag.choices.includes(text)) {
    const known = flag.choices.filter((each) => each !== '');
    return `"${text}" is not accepted; give ${known.length > 1 ? `${known.slice(0, -1).join(', ')} or ${known.at(-1)}` : known[0]}`;
  }
  const within = (min: bigint, max: bigint, what: string): string | undefined => {
    const value = parseInteger(text);
    return value !== undefined && value >= min && value <= max && (min < 0n || !/^[+-]/.test(text))
      ? undefined
      : `"${text}" is not a number; give ${what}`;
  };
  switch (flag.kind) {
    case 'string':
    case 'list':
    case 'ignored':
      return undefined;
    case 'boolean':
      return parseBoolean(text) === undefined ? `"${text}" is not accepted; give true or false` : undefined;
    case 'uint':
      return within(0n, (1n << 64n) - 1n, 'a whole number of at least 0');
    case 'uint32':
      return within(0n, (1n << 32n) - 1n, 'a whole number from 0 to 4294967295');
    case 'int':
      return within(-(1n << 63n), (1n << 63n) - 1n, 'a whole number');
    case 'duration':
      return parseDuration(text) === undefined
        ? `"${text}" is not a duration; give one with its unit, such as 500ms, 5s or 2h`
        : undefined;
    case 'urls': {
      if (text === '') return undefined;
      const urls = parseUrls(text);
      return 'problem' in urls ? urls.problem : undefined;
    }
    default:
      return flag.kind satisfies never;
  }
}

/** Parses arguments as Go's flag package does. Throws EtcdUsageProblem. */
export function readArguments(argv: readonly string[]): Given | 'help' {
  const given = new Map<FlagName, Value>();
  for (let at = 0; at < argv.length; at += 1) {
    const argument = argv[at] as string;
    if (argument === '--' || argument === '-' || !argument.startsWith('-')) {
      const stray = argument === '--' ? argv[at + 1] : argument;
      if (stray === undefined) break;
      throw new EtcdUsageProblem(1, strayArgument(stray));
    }
    const [, name = '', value] = /^--?([^=]*)(?:=(.*))?$/s.exec(argument) ?? [];
    if (name === '' || name.startsWith('-'))
      throw new EtcdUsageProblem(2, `bad flag "${argument}": write --FLAG=VALUE`);
    const known = flagNamed(name);
    if (known === undefined) {
      if (name === 'help' || name === 'h') return 'help';
      throw new EtcdUsageProblem(2, `unknown flag --${name}: see etcd --help`);
    }
    const { flag } = known;
    let text = value;
    if (text === undefined && (flag.kind === 'boolean' || flag.kind === 'ignored')) text = 'true';
    else if (text === undefined) {
      at += 1;
      text = argv[at];
      if (text === undefined) throw new EtcdUsageProblem(2, `--${name} needs a value: write --${name}=VALUE`);
    }
    const problem = problemOf(flag, text);
    if (problem !== undefined) throw new EtcdUsageProblem(2, `--${name}: ${problem}`);
    given.set(known.name, { text, label: `--${name}` });
  }
  return given;
}

function strayArgument(argument: string): string {
  if (argument === 'gateway' || argument === 'grpc-proxy') {
    return `"${argument}" is not supported; use a TCP load balancer in front of the members, or etcd's own ${argument}`;
  }
  return `"${argument}" is not a flag; flags begin with --, and the value of a boolean flag is written as --FLAG=false`;
}

const variableOf = (name: string): string => `ETCD_${name.toUpperCase().replaceAll('-', '_')}`;

/**
 * Adds values of environment variables to the arguments. A value given in both is an error, as in etcd. Throws
 * EtcdUsageProblem. Source: etcd's flags.SetFlagsFromEnv.
 */
export function readEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  given: Given,
): { readonly given: Given; readonly warnings: readonly string[] } {
  const merged = new Map(given);
  const warnings: string[] = [];
  const known = new Set<string>();
  for (const [name, flag] of FLAGS) {
    if (flag.kind === 'ignored' || name === 'version') continue;
    const label = variableOf(name);
    known.add(label);
    const text = environment[label];
    if (text === undefined || text === '') continue;
    if (given.has(name)) {
      throw new EtcdUsageProblem(1, `${label} and --${name} are both given; unset the variable or omit the flag`);
    }
    const problem = problemOf(flag, text);
    if (problem !== undefined) throw new EtcdUsageProblem(1, `${label}: ${problem}`);
    merged.set(name, { text, label });
  }
  for (const name of Object.keys(environment)) {
    if (name.startsWith('ETCD_') && !known.has(name) && name !== 'ETCD_UNSUPPORTED_ARCH') {
      warnings.push(`unknown variable ${name} ignored`);
    }
  }
  return { given: merged, warnings };
}

export function hasEtcdVariables(environment: Readonly<Record<string, string | undefined>>): boolean {
  return [...FLAGS.keys()].some((name) => (environment[variableOf(name)] ?? '') !== '');
}
