/**
 * Matching and covering of policy rules. Source: k8s.io/kubernetes/pkg/apis/rbac/v1 evaluation_helpers.go and
 * component-helpers' rule validation.
 */
import type { PolicyRule } from '../../../api/generated/rbac/v1.ts';
import { type PathAction, type ResourceAction, resourceWithSubresource } from './types.ts';

const ALL = '*';

/** The rules of a role, indexed by resource. */
export class CompiledRules {
  readonly rules: readonly PolicyRule[];
  readonly #byResource = new Map<string, PolicyRule[]>();
  readonly #paths: PolicyRule[] = [];

  constructor(rules: readonly PolicyRule[]) {
    this.rules = rules;
    for (const rule of rules) {
      for (const resource of new Set(rule.resources)) {
        const known = this.#byResource.get(resource);
        if (known === undefined) this.#byResource.set(resource, [rule]);
        else known.push(rule);
      }
      if ((rule.nonResourceURLs ?? []).length > 0) this.#paths.push(rule);
    }
  }

  allowsResource(action: ResourceAction): boolean {
    return (
      this.#anyOf(ALL, action) ||
      this.#anyOf(resourceWithSubresource(action), action) ||
      (action.subresource !== '' && this.#anyOf(`*/${action.subresource}`, action))
    );
  }

  allowsPath(action: PathAction): boolean {
    return this.#paths.some(
      (rule) =>
        includes(rule.verbs, action.verb) && (rule.nonResourceURLs ?? []).some((url) => urlCovers(url, action.path)),
    );
  }

  #anyOf(resource: string, action: ResourceAction): boolean {
    for (const rule of this.#byResource.get(resource) ?? []) {
      if (
        includes(rule.verbs, action.verb) &&
        includes(rule.apiGroups, action.group) &&
        nameMatches(rule.resourceNames, action.name)
      ) {
        return true;
      }
    }
    return false;
  }
}

/** Maximum number of single permissions to compare. Above it the result is "not covered". Real roles have hundreds. */
const MAX_BREAKDOWN = 100_000;

export interface Coverage {
  readonly covered: boolean;
  /** Missing permissions for the message, limited to some dozens. */
  readonly uncovered: readonly PolicyRule[];
}

const MAX_REPORTED = 50;

/** Reports whether `owned` covers every rule in `wanted` (upstream's `validation.Covers`). */
export function coversRules(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): Coverage {
  const uncovered: PolicyRule[] = [];
  let budget = MAX_BREAKDOWN;
  for (const rule of wanted) {
    if (owned.some((owner) => ruleCovers(owner, rule))) continue;
    for (const single of breakDown(rule)) {
      if (budget-- <= 0 || !owned.some((owner) => ruleCovers(owner, single))) uncovered.push(single);
      if (uncovered.length >= MAX_REPORTED) return { covered: false, uncovered };
    }
  }
  return { covered: uncovered.length === 0, uncovered };
}

/** Splits a rule into rules with one verb and one resource or path each. A rule that permits nothing yields nothing. */
export function* breakDown(rule: PolicyRule): Generator<PolicyRule> {
  for (const group of rule.apiGroups ?? []) {
    for (const resource of rule.resources ?? []) {
      for (const verb of rule.verbs) {
        const single = { apiGroups: [group], resources: [resource], verbs: [verb] };
        const names = rule.resourceNames ?? [];
        if (names.length === 0) yield single;
        else for (const name of names) yield { ...single, resourceNames: [name] };
      }
    }
  }
  for (const url of rule.nonResourceURLs ?? []) {
    for (const verb of rule.verbs) yield { nonResourceURLs: [url], verbs: [verb] };
  }
}

function ruleCovers(owner: PolicyRule, wanted: PolicyRule): boolean {
  return (
    includesAll(owner.verbs, wanted.verbs) &&
    includesAll(owner.apiGroups, wanted.apiGroups) &&
    resourcesCover(owner.resources, wanted.resources) &&
    namesCover(owner.resourceNames, wanted.resourceNames) &&
    (wanted.nonResourceURLs ?? []).every((url) => (owner.nonResourceURLs ?? []).some((own) => urlCovers(own, url)))
  );
}

function resourcesCover(owned: readonly string[] | undefined, wanted: readonly string[] | undefined): boolean {
  if (includes(owned, ALL)) return true;
  return (wanted ?? []).every((resource) => {
    if (owned?.includes(resource) === true) return true;
    const slash = resource.indexOf('/');
    return slash >= 0 && owned?.includes(`*${resource.slice(slash)}`) === true;
  });
}

/**
 * Reports whether the resource names of an owned rule cover those of a wanted rule. A rule without names applies to all
 * names, so a list of names never covers it.
 */
function namesCover(owned: readonly string[] | undefined, wanted: readonly string[] | undefined): boolean {
  if ((owned ?? []).length === 0) return true;
  return (wanted ?? []).length > 0 && (wanted ?? []).every((name) => owned?.includes(name) === true);
}

function urlCovers(own: string, url: string): boolean {
  if (own === ALL || own === url) return true;
  return own.endsWith('*') && url.startsWith(own.replace(/\*+$/, ''));
}

function nameMatches(names: readonly string[] | undefined, name: string): boolean {
  return names === undefined || names.length === 0 || names.includes(name);
}

function includes(own: readonly string[] | undefined, wanted: string): boolean {
  return own !== undefined && (own.includes(wanted) || own.includes(ALL));
}

function includesAll(own: readonly string[] | undefined, wanted: readonly string[] | undefined): boolean {
  return own?.includes(ALL) === true || (wanted ?? []).every((each) => own?.includes(each) === true);
}
