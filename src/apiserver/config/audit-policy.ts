/** Parses upstream's audit policy file. Source: audit.k8s.io/v1 Policy, k8s.io/apiserver/pkg/apis/audit/validation. */
import { CodedError } from '../../base/errors.ts';
import { boolean, checkedString, list, object, oneOf, parseConfig, string } from '../../wire/strict-yaml.ts';
import { AUDIT_LEVELS, AUDIT_STAGES, type AuditPolicy } from '../index.ts';

const stages = () => list(oneOf(...AUDIT_STAGES));
const url = () =>
  checkedString((text) =>
    text === '*' || (text.startsWith('/') && !text.slice(0, -1).includes('*'))
      ? undefined
      : 'give a path that begins with "/", with "*" at its end at most',
  );

const field = object(
  {
    apiVersion: oneOf('audit.k8s.io/v1'),
    kind: oneOf('Policy'),
    metadata: object({ name: string() }),
    omitStages: stages(),
    omitManagedFields: boolean(),
    rules: list(
      object(
        {
          level: oneOf(...AUDIT_LEVELS),
          users: list(string()),
          userGroups: list(string()),
          verbs: list(string()),
          resources: list(object({ group: string(), resources: list(string()), resourceNames: list(string()) })),
          namespaces: list(string()),
          nonResourceURLs: list(url()),
          omitStages: stages(),
          omitManagedFields: boolean(),
        },
        ['level'],
      ),
    ),
  },
  ['apiVersion', 'kind', 'rules'],
);

/** Parses an audit policy. Throws CodedError 'bad-config' with file, line and field. */
export function parseAuditPolicy(text: string, file: string): AuditPolicy {
  const policy = parseConfig(text, file, field);
  for (const [index, rule] of policy.rules.entries()) {
    const refuse = (what: string): never => {
      throw new CodedError('bad-config', `${file}: rules[${index}]${what}`);
    };
    const resources = [...(rule.resources ?? []), ...(rule.namespaces ?? [])].length > 0;
    if (resources && (rule.nonResourceURLs ?? []).length > 0)
      refuse(': names both resources and nonResourceURLs; write two rules');
    for (const each of rule.resources ?? []) {
      if (/[/.]v\d/.test(each.group ?? '')) refuse('.resources: a group is written without its version');
      if ((each.resourceNames ?? []).length > 0 && (each.resources ?? []).length === 0)
        refuse('.resources: resourceNames need resources beside them');
    }
  }
  return policy;
}
