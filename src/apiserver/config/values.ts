/** Values given by flags or in master-config.yaml, each validated by its flag's kind. Source: spf13/pflag. */
import { parseDuration } from '../../base/time/duration.ts';
import { parseBoolean, parseInteger } from '../../wire/go-flag-values.ts';
import { type ApiFlag, type ApiFlagName, flagOf } from './flags.ts';

/** A usage error; the message has the flag and the fix. */
export class ApiUsageProblem extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ApiUsageProblem';
  }
}

interface Value {
  readonly texts: readonly string[];
  readonly label: string;
}

export class ApiValues {
  readonly #given = new Map<ApiFlagName, Value>();
  readonly #locate: (path: string) => string;

  /** `locate`: resolves a file name. */
  constructor(locate: (path: string) => string) {
    this.#locate = locate;
  }

  /** Sets a flag. If a single-valued flag is given several texts, the last text is used. Throws ApiUsageProblem. */
  give(name: string, texts: readonly string[], label: string): void {
    const known = flagOf(name.replaceAll('_', '-'));
    if (known === undefined) throw new ApiUsageProblem(`unknown flag ${label}: see kube-apiserver --help`);
    for (const text of texts) {
      const problem = problemOf(known.flag, text);
      if (problem !== undefined) throw new ApiUsageProblem(`${label}: ${problem}`);
    }
    const before = this.#given.get(known.name);
    const many = known.flag.kind === 'list' || known.flag.kind === 'repeated';
    this.#given.set(known.name, { texts: many ? [...(before?.texts ?? []), ...texts] : texts, label });
  }

  get size(): number {
    return this.#given.size;
  }

  /** One log line for each given flag without effect. Throws ApiUsageProblem for refused flags. */
  warnings(): string[] {
    const lines: string[] = [];
    for (const [name, { texts, label }] of this.#given) {
      const flag = flagOf(name)?.flag;
      if (flag === undefined || flag.use === 'used') continue;
      if (texts.every((text) => text === flag.initial || text === '')) continue;
      if (flag.use === 'refused') throw new ApiUsageProblem(`${label}=${texts.join(',')}: ${flag.help}`);
      lines.push(`${label} has no effect: ${flag.help}`);
    }
    return lines;
  }

  has(name: ApiFlagName): boolean {
    return this.#given.has(name);
  }

  label(name: ApiFlagName): string {
    return this.#given.get(name)?.label ?? `--${name}`;
  }

  text(name: ApiFlagName): string {
    return this.#given.get(name)?.texts.at(-1) ?? flagOf(name)?.flag.initial ?? '';
  }

  /** Resolved file name in a flag. Undefined if the flag is not given or empty. */
  file(name: ApiFlagName): string | undefined {
    const path = this.text(name);
    return path === '' ? undefined : this.#locate(path);
  }

  /** Resolves a file name that is part of a flag's value. */
  located(path: string): string {
    return this.#locate(path);
  }

  files(name: ApiFlagName): string[] {
    return this.list(name).map((path) => this.#locate(path));
  }

  boolean(name: ApiFlagName): boolean {
    return parseBoolean(this.text(name)) === true;
  }

  number(name: ApiFlagName): number {
    return Number(parseInteger(this.text(name)) ?? 0n);
  }

  milliseconds(name: ApiFlagName): number {
    return parseDuration(this.text(name)) ?? 0;
  }

  list(name: ApiFlagName): string[] {
    const texts = this.#given.get(name)?.texts ?? [flagOf(name)?.flag.initial ?? ''];
    const split = flagOf(name)?.flag.kind === 'repeated' ? texts : texts.flatMap((text) => text.split(','));
    return split.map((each) => each.trim()).filter((each) => each !== '');
  }

  refuse(name: ApiFlagName, what: string): never {
    throw new ApiUsageProblem(`${this.label(name)}: ${what}`);
  }
}

function problemOf(flag: ApiFlag, text: string): string | undefined {
  if (flag.choices !== undefined && !flag.choices.includes(text)) {
    return `"${text}" is not accepted; give ${flag.choices.filter((each) => each !== '').join(' or ')}`;
  }
  switch (flag.kind) {
    case 'boolean':
      return parseBoolean(text) === undefined ? `"${text}" is not accepted; give true or false` : undefined;
    case 'int':
      return parseInteger(text) === undefined ? `"${text}" is not a whole number` : undefined;
    case 'float':
      return /^\d*\.?\d+$/.test(text) ? undefined : `"${text}" is not a number`;
    case 'duration':
      return parseDuration(text) === undefined
        ? `"${text}" is not a duration; give one with its unit, such as 500ms, 5s or 2h`
        : undefined;
    default:
      return undefined;
  }
}

/** Reads kube-apiserver's arguments into `values`; returns 'help' if help is requested. Throws ApiUsageProblem. */
export function readApiArguments(argv: readonly string[], values: ApiValues): 'help' | undefined {
  for (let at = 0; at < argv.length; at += 1) {
    const argument = argv[at] as string;
    const [, long, short, value] = /^(?:--([^=-][^=]*)|-([a-z]))(?:=(.*))?$/s.exec(argument) ?? [];
    const name = long ?? short;
    if (name === undefined) throw new ApiUsageProblem(`"${argument}" is not a flag; write --FLAG=VALUE`);
    const known = flagOf(name.replaceAll('_', '-'));
    if (known === undefined) {
      if (name === 'help' || name === 'h') return 'help';
      throw new ApiUsageProblem(`unknown flag --${name}: see kube-apiserver --help`);
    }
    let text = value;
    if (text === undefined && known.flag.kind === 'boolean') text = 'true';
    else if (text === undefined) {
      at += 1;
      text = argv[at];
      if (text === undefined) throw new ApiUsageProblem(`--${name} needs a value: write --${name}=VALUE`);
    }
    values.give(known.name, [text], `--${name}`);
  }
  return undefined;
}
