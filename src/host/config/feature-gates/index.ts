/**
 * Validates `--feature-gates` as the components of Kubernetes 1.36 do. Source: featuregate and compatibility of
 * k8s.io/component-base.
 */
import type { ApiValues } from '../../../apiserver/config/index.ts';
import { parseBoolean } from '../../../wire/go-flag-values.ts';
import { FEATURE_GATES } from './list.ts';

interface Gate {
  readonly stage: string;
  readonly initial: boolean;
  readonly locked: boolean;
  readonly needs: readonly string[];
}

const FLAG = 'feature-gates';
/** Component that a gate without a prefix belongs to. */
const COMPONENT = 'kube';
/** Gates that set all gates of a stage, except gates that are given explicitly. */
const ALL_OF_STAGE = new Map([
  ['AllAlpha', 'ALPHA'],
  ['AllBeta', 'BETA'],
]);

interface FeatureGates {
  /** Booleans by the name of the gate. */
  readonly given: ReadonlyMap<string, boolean>;
  /** Upstream's error message if the gates are invalid. */
  readonly problem?: string;
}

/** Throws ApiUsageProblem with upstream's reason. */
export function checkFeatureGates(values: ApiValues): void {
  const { problem } = readFeatureGates(values.list(FLAG));
  if (problem !== undefined) values.refuse(FLAG, problem);
}

/** `pairs`: texts of the form `GATE=BOOLEAN`. Either all of them or none have the prefix `kube:`. */
export function readFeatureGates(pairs: readonly string[]): FeatureGates {
  const { given, problem } = readPairs(pairs);
  if (problem !== undefined || given.size === 0) return { given, ...(problem === undefined ? {} : { problem }) };
  const problems = problemsOf(given);
  if (problems.length === 0) return { given };
  return { given, problem: problems.length === 1 ? problems.join() : `[${problems.join(', ')}]` };
}

function problemsOf(given: ReadonlyMap<string, boolean>): readonly string[] {
  const gates = readGates();
  const problems: string[] = [];
  for (const [name, on] of given) {
    const gate = gates.get(name);
    if (gate === undefined) return [...problems, `unrecognized feature gate: ${name}`];
    if (gate.locked && on !== gate.initial)
      problems.push(`cannot set feature gate ${name} to ${on}, feature is locked to ${gate.initial}`);
  }
  return problems.length > 0 ? problems : missingDependencies(gates, given);
}

function readPairs(pairs: readonly string[]): FeatureGates {
  const given = new Map<string, boolean>();
  const prefixes = new Set<string>();
  for (const pair of pairs) {
    const [, prefix = '', rest = ''] = /^(?:([^:=]*):)?(.*)$/s.exec(pair) ?? [];
    prefixes.add(prefix.trim());
    const at = rest.indexOf('=');
    const name = (at < 0 ? rest : rest.slice(0, at)).trim();
    if (at < 0) return { given, problem: `missing bool value for ${name}` };
    const text = rest.slice(at + 1).trim();
    const on = parseBoolean(text);
    if (on === undefined) {
      const reason = `strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`;
      return { given, problem: `invalid value of ${name}=${text}, err: ${reason}` };
    }
    given.set(name, on);
  }
  const other = [...prefixes].find((prefix) => prefix !== '' && prefix !== COMPONENT);
  if (other !== undefined) return { given, problem: `component not registered: ${other}` };
  if (prefixes.size > 1)
    return {
      given,
      problem: 'set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use',
    };
  return { given };
}

function readGates(): ReadonlyMap<string, Gate> {
  return new Map(
    FEATURE_GATES.map((line) => {
      const [name = '', stage = '', initial, locked, needs] = line.split(' ');
      return [name, { stage, initial: initial === 'on', locked: locked === 'locked', needs: needs?.split(',') ?? [] }];
    }),
  );
}

function missingDependencies(gates: ReadonlyMap<string, Gate>, given: ReadonlyMap<string, boolean>): string[] {
  const ofStage = new Map<string, boolean>();
  for (const [name, stage] of ALL_OF_STAGE) {
    const on = given.get(name);
    if (on !== undefined) ofStage.set(stage, on);
  }
  const isOn = (name: string): boolean => {
    const gate = gates.get(name);
    return given.get(name) ?? (gate && (ofStage.get(gate.stage) ?? gate.initial)) ?? false;
  };
  return [...gates]
    .filter(([name]) => isOn(name))
    .map(([name, { needs }]) => ({ name, off: needs.filter((need) => !isOn(need)) }))
    .filter(({ off }) => off.length > 0)
    .map(({ name, off }) => `${name} is enabled, but depends on features that are disabled: [${off.join(' ')}]`);
}
