/** Function `semver`. Sources: semver.org 2.0, k8s.io/apiserver/pkg/cel/library/semverlib.go. */
import { declare, type Overload } from '../functions.ts';
import { Opaque, type Value } from '../values.ts';
import { fail, of, reads } from './opaque.ts';

const SEMVER = 'kubernetes.Semver';

interface Semver {
  readonly numbers: readonly [bigint, bigint, bigint];
  readonly pre: readonly string[];
}

const SEMVER_PATTERN =
  /^(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})(?:-([\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*))?(?:\+[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*)?$/;

function parseSemver(text: string, normalize: boolean): Semver | undefined {
  let source = text;
  if (normalize) {
    const match = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?([-+].*)?$/.exec(text.slice(0, 256));
    if (match !== null)
      source = `${BigInt(match[1] ?? 0)}.${BigInt(match[2] ?? 0)}.${BigInt(match[3] ?? 0)}${match[4] ?? ''}`;
  }
  const match = SEMVER_PATTERN.exec(source.length > 256 ? '' : source);
  if (match === null) return undefined;
  const pre = match[4]?.split('.') ?? [];
  if (pre.some((each) => /^0\d+$/.test(each))) return undefined;
  return { numbers: [BigInt(match[1] ?? 0), BigInt(match[2] ?? 0), BigInt(match[3] ?? 0)], pre };
}

function compareSemver(a: Semver, b: Semver): number {
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n;
    if (number !== other) return number < other ? -1 : 1;
  }
  if (a.pre.length === 0 || b.pre.length === 0) return Math.sign(b.pre.length - a.pre.length);
  for (let index = 0; index < Math.max(a.pre.length, b.pre.length); index++) {
    const left = a.pre[index];
    const right = b.pre[index];
    if (left === undefined || right === undefined) return left === undefined ? -1 : 1;
    if (left === right) continue;
    const numbers = [/^\d+$/.test(left), /^\d+$/.test(right)];
    if (numbers[0] === true && numbers[1] === true) return BigInt(left) < BigInt(right) ? -1 : 1;
    if (numbers[0] !== numbers[1]) return numbers[0] === true ? -1 : 1;
    return left < right ? -1 : 1;
  }
  return 0;
}

const semver = (text: string, normalize: boolean): Opaque => {
  const parsed =
    parseSemver(text, normalize) ?? fail(`no valid semantic version: ${JSON.stringify(text.slice(0, 64))}`);
  return new Opaque(SEMVER, parsed, `${parsed.numbers.join('.')}-${parsed.pre.join('.')}`);
};

export const semvers: readonly Overload[] = [
  declare('semver(string): kubernetes.Semver', (text: string) => semver(text, false), reads),
  declare('semver(string, bool): kubernetes.Semver', semver, reads),
  declare('isSemver(string): bool', (text: string) => parseSemver(text, false) !== undefined, reads),
  declare(
    'isSemver(string, bool): bool',
    (text: string, normalize: boolean) => parseSemver(text, normalize) !== undefined,
    reads,
  ),
  ...(['major', 'minor', 'patch'] as const).map((name, index) =>
    declare(`kubernetes.Semver.${name}(): int`, (value: Opaque) => of<Semver>(value).numbers[index] ?? 0n),
  ),
  declare(
    'kubernetes.Semver.isLessThan(kubernetes.Semver): bool',
    (a: Opaque, b: Opaque) => compareSemver(of(a), of(b)) < 0,
  ),
  declare(
    'kubernetes.Semver.isGreaterThan(kubernetes.Semver): bool',
    (a: Opaque, b: Opaque) => compareSemver(of(a), of(b)) > 0,
  ),
  declare('kubernetes.Semver.compareTo(kubernetes.Semver): int', (a: Opaque, b: Opaque) =>
    BigInt(compareSemver(of(a), of(b))),
  ),
];

const textOf = (value: Value): string => (typeof value === 'string' ? value : fail('no such overload'));

/** Source: operator-framework/api pkg/constraints/cel.go. */
export const semverComparison: readonly Overload[] = [
  declare('semver_compare(dyn, dyn): int', (a: Value, b: Value) =>
    BigInt(compareSemver(of(semver(textOf(a), false)), of(semver(textOf(b), false)))),
  ),
];
