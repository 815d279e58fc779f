/** Function `semver`. Sources: semver.org 2.0, k8s.io/apiserver/pkg/cel/library/semverlib.go. */
import { compareSemver, parseSemver, type SemanticVersion } from '../../../base/versions/semver.ts';
import { declareFunction, type Overload } from '../functions.ts';
import { Opaque, type Value } from '../values.ts';
import { fail, of, reads } from './opaque.ts';

const SEMVER = 'kubernetes.Semver';

function parse(text: string, form: 'normalized' | 'exact'): SemanticVersion | undefined {
  if (form === 'exact') return parseSemver(text);
  const match = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?([-+].*)?$/.exec(text.slice(0, 256));
  if (match === null) return parseSemver(text);
  const [major, minor, patch] = [1, 2, 3].map((index) => BigInt(match[index] ?? 0));
  return parseSemver(`${major}.${minor}.${patch}${match[4] ?? ''}`);
}

const semver = (text: string, form: 'normalized' | 'exact'): Opaque => {
  const parsed = parse(text, form) ?? fail(`no valid semantic version: ${JSON.stringify(text.slice(0, 64))}`);
  return new Opaque(SEMVER, parsed, `${parsed.major}.${parsed.minor}.${parsed.patch}-${parsed.pre.join('.')}`);
};

export const semvers: readonly Overload[] = [
  declareFunction('semver(string): kubernetes.Semver', (text: string) => semver(text, 'exact'), reads),
  declareFunction('semver(string, bool): kubernetes.Semver', semver, reads),
  declareFunction('isSemver(string): bool', (text: string) => parse(text, 'exact') !== undefined, reads),
  declareFunction(
    'isSemver(string, bool): bool',
    (text: string, normalize: boolean) => parse(text, normalize ? 'normalized' : 'exact') !== undefined,
    reads,
  ),
  ...(['major', 'minor', 'patch'] as const).map((name) =>
    declareFunction(`kubernetes.Semver.${name}(): int`, (value: Opaque) => of<SemanticVersion>(value)[name]),
  ),
  declareFunction(
    'kubernetes.Semver.isLessThan(kubernetes.Semver): bool',
    (a: Opaque, b: Opaque) => compareSemver(of(a), of(b)) < 0,
  ),
  declareFunction(
    'kubernetes.Semver.isGreaterThan(kubernetes.Semver): bool',
    (a: Opaque, b: Opaque) => compareSemver(of(a), of(b)) > 0,
  ),
  declareFunction('kubernetes.Semver.compareTo(kubernetes.Semver): int', (a: Opaque, b: Opaque) =>
    BigInt(compareSemver(of(a), of(b))),
  ),
];

const textOf = (value: Value): string => (typeof value === 'string' ? value : fail('no such overload'));

/** Source: operator-framework/api pkg/constraints/cel.go. */
export const semverComparison: readonly Overload[] = [
  declareFunction('semver_compare(dyn, dyn): int', (a: Value, b: Value) =>
    BigInt(compareSemver(of(semver(textOf(a), 'exact')), of(semver(textOf(b), 'exact')))),
  ),
];
