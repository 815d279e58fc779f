/** The audit level of a request. Source: audit.k8s.io/v1 Policy; k8s.io/apiserver/pkg/audit/policy. */
import type { UserInfo } from '../../api/registry/definition.ts';
import type { RequestInfo, ResourceRequestInfo } from '../http/request-info.ts';

export const AUDIT_LEVELS = ['None', 'Metadata', 'Request', 'RequestResponse'] as const;
export type AuditLevel = (typeof AUDIT_LEVELS)[number];
export const AUDIT_STAGES = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const;
export type AuditStage = (typeof AUDIT_STAGES)[number];

export interface AuditRule {
  readonly level: AuditLevel;
  readonly users?: readonly string[];
  readonly userGroups?: readonly string[];
  readonly verbs?: readonly string[];
  readonly resources?: readonly {
    readonly group?: string;
    readonly resources?: readonly string[];
    readonly resourceNames?: readonly string[];
  }[];
  readonly namespaces?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly omitStages?: readonly AuditStage[];
  readonly omitManagedFields?: boolean;
}

export interface AuditPolicy {
  readonly rules: readonly AuditRule[];
  readonly omitStages?: readonly AuditStage[];
  readonly omitManagedFields?: boolean;
}

export interface AuditDecision {
  readonly level: AuditLevel;
  readonly omitStages: ReadonlySet<AuditStage>;
  readonly omitManagedFields: boolean;
}

const NOTHING: AuditDecision = { level: 'None', omitStages: new Set(), omitManagedFields: false };

/** Decision of the first rule that matches. A request that no rule matches is not recorded. */
export function decideAudit(policy: AuditPolicy, user: UserInfo, info: RequestInfo): AuditDecision {
  const rule = policy.rules.find((each) => matches(each, user, info));
  if (rule === undefined || rule.level === 'None') return NOTHING;
  return {
    level: rule.level,
    omitStages: new Set([...(policy.omitStages ?? []), ...(rule.omitStages ?? [])]),
    omitManagedFields: rule.omitManagedFields ?? policy.omitManagedFields ?? false,
  };
}

const given = (list: readonly unknown[] | undefined): list is readonly unknown[] =>
  list !== undefined && list.length > 0;

function matches(rule: AuditRule, user: UserInfo, info: RequestInfo): boolean {
  if (given(rule.users) && !rule.users.includes(user.name)) return false;
  if (given(rule.userGroups) && !user.groups.some((group) => rule.userGroups?.includes(group))) return false;
  if (given(rule.verbs) && !rule.verbs.includes(info.verb)) return false;
  if (given(rule.namespaces) || given(rule.resources)) return info.resource && matchesResource(rule, info);
  if (given(rule.nonResourceURLs))
    return !info.resource && rule.nonResourceURLs.some((url) => matchesPath(url, info.path));
  return true;
}

function matchesResource(rule: AuditRule, info: ResourceRequestInfo): boolean {
  if (given(rule.namespaces) && !rule.namespaces.includes(info.namespace)) return false;
  if (!given(rule.resources)) return true;
  const { plural, subresource, name } = info;
  const whole = subresource === '' ? plural : `${plural}/${subresource}`;
  return rule.resources.some(({ group = '', resources, resourceNames }) => {
    if (group !== info.group) return false;
    if (!given(resources)) return true;
    if (given(resourceNames) && !resourceNames.includes(name)) return false;
    return resources.some(
      (each) =>
        each === '*' || each === whole || (subresource !== '' && each === `*/${subresource}`) || each === `${plural}/*`,
    );
  });
}

function matchesPath(pattern: string, path: string): boolean {
  if (pattern === '*' || pattern === path) return true;
  return pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1));
}
