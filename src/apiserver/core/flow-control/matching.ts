/** Matches requests to flow schemas. Source: KEP-1040; k8s.io/apiserver/pkg/util/flowcontrol/rule.go. */
import type {
  FlowSchema,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  ResourcePolicyRule,
  Subject,
} from '../../../api/generated/flowcontrol/v1.ts';
import type { Requester, RequestTarget } from './types.ts';

const includes = (values: readonly string[] | undefined, value: string): boolean =>
  values !== undefined && (values.includes(value) || values.includes('*'));

/** The rules of a schema whose subjects match a requester. Only the request must still be compared with these rules. */
export type OwnRules = readonly PolicyRulesWithSubjects[];

export function rulesFor(schema: FlowSchema, requester: Requester): OwnRules {
  return (schema.spec?.rules ?? []).filter((rule) => rule.subjects.some((subject) => isSubject(subject, requester)));
}

function isSubject(subject: Subject, requester: Requester): boolean {
  switch (subject.kind) {
    case 'Group':
      return subject.group?.name === '*' || requester.groups.includes(subject.group?.name ?? '');
    case 'User':
      return subject.user?.name === '*' || subject.user?.name === requester.name;
    case 'ServiceAccount': {
      const { namespace = '', name = '' } = subject.serviceAccount ?? {};
      const prefix = `system:serviceaccount:${namespace}:`;
      return name === '*' ? requester.name.startsWith(prefix) : requester.name === `${prefix}${name}`;
    }
    default:
      return false;
  }
}

export function matchesRules(rules: OwnRules, target: RequestTarget): boolean {
  for (const rule of rules) {
    if (target.resource) {
      for (const each of rule.resourceRules ?? []) if (matchesResource(each, target)) return true;
    } else {
      for (const each of rule.nonResourceRules ?? []) if (matchesPath(each, target)) return true;
    }
  }
  return false;
}

function matchesResource(rule: ResourcePolicyRule, target: RequestTarget & { resource: true }): boolean {
  if (!includes(rule.verbs, target.verb) || !includes(rule.apiGroups, target.group)) return false;
  if (!rule.resources.includes('*')) {
    const { plural, subresource } = target;
    if (!rule.resources.includes(subresource === '' ? plural : `${plural}/${subresource}`)) return false;
  }
  return target.namespace === '' ? rule.clusterScope === true : includes(rule.namespaces, target.namespace);
}

function matchesPath(rule: NonResourcePolicyRule, target: RequestTarget & { resource: false }): boolean {
  if (!includes(rule.verbs, target.verb)) return false;
  return rule.nonResourceURLs.some(
    (url) => url === target.path || (url.endsWith('*') && target.path.startsWith(url.slice(0, -1))),
  );
}

export function byPrecedence(left: FlowSchema, right: FlowSchema): number {
  const difference = (left.spec?.matchingPrecedence ?? 0) - (right.spec?.matchingPrecedence ?? 0);
  if (difference !== 0) return difference;
  const [a, b] = [left.metadata?.name ?? '', right.metadata?.name ?? ''];
  return a < b ? -1 : a > b ? 1 : 0;
}
