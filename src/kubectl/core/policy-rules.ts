/**
 * Rows about rules of roles: one for each resource with all its verbs, and one for each URL and verb.
 * Source: k8s.io/kubectl/pkg/util/rbac, k8s.io/kubectl/pkg/describe.
 */
import { fieldAt } from './objects.ts';

interface SimpleRule {
  readonly verbs: string[];
  readonly group: string;
  readonly resource: string;
  /** Undefined if the rule applies to all names. */
  readonly name: string | undefined;
  readonly url: string | undefined;
}

export const RULE_COLUMNS = ['Resources', 'Non-Resource URLs', 'Resource Names', 'Verbs'];

/** Cells of `RULE_COLUMNS` in the order in which kubectl prints the rules. */
export function ruleRows(rules: readonly object[]): string[][] {
  const merged = new Map<string, SimpleRule>();
  const urls: SimpleRule[] = [];
  for (const rule of rules.flatMap(simpleRules)) {
    const { group, resource, name, url } = rule;
    const key = JSON.stringify([group, resource, name]);
    const known = merged.get(key);
    if (url !== undefined) urls.push(rule);
    else if (known === undefined) merged.set(key, rule);
    else known.verbs.push(...rule.verbs.filter((verb) => !known.verbs.includes(verb)));
  }
  return [...urls, ...merged.values()]
    .map((rule) => ({ rule, order: orderOf(rule) }))
    .sort((left, right) => (left.order < right.order ? -1 : left.order > right.order ? 1 : 0))
    .map(({ rule }) => [
      rule.url === undefined ? withGroup(rule.resource, rule.group) : '',
      `[${rule.url ?? ''}]`,
      `[${rule.name ?? ''}]`,
      `[${rule.verbs.join(' ')}]`,
    ]);
}

function simpleRules(rule: object): SimpleRule[] {
  const texts = (field: string): string[] => {
    const value = fieldAt(rule, field);
    return Array.isArray(value) ? value.map(String) : [];
  };
  const verbs = texts('verbs');
  const names = texts('resourceNames');
  const simple: SimpleRule[] = [];
  for (const group of texts('apiGroups'))
    for (const resource of texts('resources'))
      for (const verb of verbs)
        for (const name of names.length === 0 ? [undefined] : names)
          simple.push({ verbs: [verb], group, resource, name, url: undefined });
  for (const url of texts('nonResourceURLs'))
    for (const verb of verbs) simple.push({ verbs: [verb], group: '', resource: '', name: undefined, url });
  return simple;
}

/** Text by which kubectl sorts rules: that of the rule in Go. */
function orderOf({ verbs, group, resource, name, url }: SimpleRule): string {
  const [groups, resources] = url === undefined ? [group, resource] : ['', ''];
  return `Verbs:[${verbs.join(' ')}],APIGroups:[${groups}],Resources:[${resources}],ResourceNames:[${name ?? ''}],NonResourceURLs:[${url ?? ''}],`;
}

/** Resource with its group, such as `deployments.apps/scale`. */
function withGroup(resource: string, group: string): string {
  const [plain = '', ...subresource] = resource.split('/');
  const suffix = subresource.length === 0 ? '' : `/${subresource.join('/')}`;
  return `${plain}${group === '' ? '' : `.${group}`}${suffix}`;
}
