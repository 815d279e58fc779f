/** Given values by flag name, with etcd's defaults. They have already been validated by kind. */

import { parseDuration } from '../../base/time/duration.ts';
import { type EtcdUrl, parseBoolean, parseInteger, parseUrls } from '../../wire/go-flag-values.ts';
import { FLAGS, type FlagName } from './flags.ts';
import { EtcdUsageProblem, type Given } from './given-values.ts';

export function rejectValue(message: string): never {
  throw new EtcdUsageProblem(1, message);
}

export class Values {
  readonly #given: Given;
  readonly #locate: (path: string) => string;

  constructor(given: Given, locate: (path: string) => string) {
    this.#given = given;
    this.#locate = locate;
  }

  has(name: FlagName): boolean {
    return this.#given.has(name);
  }

  label(name: FlagName): string {
    return this.#given.get(name)?.label ?? `--${name}`;
  }

  text(name: FlagName): string {
    return this.#given.get(name)?.text ?? FLAGS.get(name)?.initial ?? '';
  }

  file(name: FlagName): string | undefined {
    const path = this.text(name);
    return path === '' ? undefined : this.#locate(path);
  }

  located(path: string): string {
    return this.#locate(path);
  }

  boolean(name: FlagName): boolean {
    return parseBoolean(this.text(name)) === true;
  }

  number(name: FlagName): number {
    return Number(parseInteger(this.text(name)) ?? 0n);
  }

  milliseconds(name: FlagName): number {
    return parseDuration(this.text(name)) ?? 0;
  }

  list(name: FlagName): string[] {
    return this.text(name)
      .split(',')
      .map((each) => each.trim())
      .filter((each) => each !== '');
  }

  urls(name: FlagName): readonly EtcdUrl[] {
    const text = this.text(name);
    const urls = text === '' ? [] : parseUrls(text);
    return 'problem' in urls ? rejectValue(`${this.label(name)}: ${urls.problem}`) : urls;
  }
}
