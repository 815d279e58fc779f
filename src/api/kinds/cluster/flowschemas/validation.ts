/** Validation of flow schemas. Source: k8s.io/kubernetes/pkg/apis/flowcontrol/validation. */

import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../../base/names.ts';
import { mandatorySchemas, mandatorySpec } from '../../../flow-control/defaults.ts';
import type {
  FlowSchema,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  ResourcePolicyRule,
  Subject,
} from '../../../generated/flowcontrol/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { validateNameRule, validateOptionalOneOf } from '../../../validation/scalars.ts';

const MAX_PRECEDENCE = 10_000;
const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch', 'proxy'];

export function validateFlowSchema(schema: FlowSchema): FieldError[] {
  const spec = schema.spec;
  const precedence = spec?.matchingPrecedence ?? 0;
  const errors: FieldError[] = [];
  const path = 'spec.matchingPrecedence';
  if (precedence <= 0) errors.push(fieldError.invalid(path, precedence, 'must be a positive value'));
  if (precedence > MAX_PRECEDENCE) {
    errors.push(fieldError.invalid(path, precedence, `must not be greater than ${MAX_PRECEDENCE}`));
  }
  if (precedence === 1 && schema.metadata?.name !== 'exempt') {
    errors.push(fieldError.invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"));
  }
  const method = spec?.distinguisherMethod;
  if (method !== undefined) {
    errors.push(
      ...validateOptionalOneOf(method.type ?? '', ['ByNamespace', 'ByUser'], 'spec.distinguisherMethod.type'),
    );
  }
  const level = spec?.priorityLevelConfiguration?.name;
  const at = 'spec.priorityLevelConfiguration.name';
  if (!isSet(level)) errors.push(fieldError.required(at, 'must reference a priority level'));
  else errors.push(...validateNameRule(level, dns1123SubdomainErrors, at));
  (spec?.rules ?? []).forEach((rule, index) => {
    errors.push(...validateRule(rule, `spec.rules[${index}]`));
  });
  const { name } = schema.metadata ?? {};
  const fixed = mandatorySpec(mandatorySchemas, name);
  if (fixed !== undefined && !semanticEqual(spec, fixed)) {
    errors.push(fieldError.invalid('spec', spec, `spec of '${name}' must equal the fixed value`));
  }
  return errors;
}

/** Validates the status of flow schemas and priority levels. Only the types of the conditions are checked. */
export function validateFlowStatus({
  status,
}: {
  status?: { conditions?: readonly { type?: string }[] };
}): FieldError[] {
  const seen = new Set<string>();
  return (status?.conditions ?? []).flatMap(({ type = '' }, index) => {
    const at = `status.conditions[${index}].type`;
    const repeated = seen.has(type);
    seen.add(type);
    return [
      ...(repeated ? [fieldError.duplicate(at, type)] : []),
      ...(type === '' ? [fieldError.required(at, 'must not be empty')] : []),
    ];
  });
}

function validateRule(rule: PolicyRulesWithSubjects, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const subjects = rule.subjects ?? [];
  if (subjects.length === 0)
    errors.push(fieldError.required(`${at}.subjects`, 'subjects must contain at least one value'));
  subjects.forEach((subject, index) => {
    errors.push(...validateSubject(subject, `${at}.subjects[${index}]`));
  });
  const { resourceRules = [], nonResourceRules = [] } = rule;
  if (resourceRules.length + nonResourceRules.length === 0) {
    errors.push(fieldError.required(at, 'at least one of resourceRules and nonResourceRules has to be non-empty'));
  }
  resourceRules.forEach((each, index) => {
    errors.push(...validateResourceRule(each, `${at}.resourceRules[${index}]`));
  });
  nonResourceRules.forEach((each, index) => {
    errors.push(...validateNonResourceRule(each, `${at}.nonResourceRules[${index}]`));
  });
  return errors;
}

const SUBJECTS: Readonly<Record<string, 'user' | 'group' | 'serviceAccount'>> = {
  ServiceAccount: 'serviceAccount',
  User: 'user',
  Group: 'group',
};

function validateSubject(subject: Subject, at: string): FieldError[] {
  const own = Object.hasOwn(SUBJECTS, subject.kind ?? '') ? SUBJECTS[subject.kind] : undefined;
  if (own === undefined)
    return [fieldError.notSupported(`${at}.kind`, subject.kind ?? '', Object.keys(SUBJECTS).sort())];
  const errors = validateNamed(subject, own, at);
  for (const [kind, field] of Object.entries(SUBJECTS)) {
    if (field === own || subject[field] === undefined) continue;
    errors.push(fieldError.forbidden(`${at}.${field}`, `${field} is forbidden when subject kind is not '${kind}'`));
  }
  return errors;
}

function validateNamed(subject: Subject, own: 'user' | 'group' | 'serviceAccount', at: string): FieldError[] {
  const named = subject[own];
  if (named === undefined) {
    return [fieldError.required(`${at}.${own}`, `${own} is required when subject kind is '${subject.kind}'`)];
  }
  const errors: FieldError[] = [];
  if (!isSet(named.name)) errors.push(fieldError.required(`${at}.${own}.name`));
  else if (own === 'serviceAccount' && named.name !== '*') {
    errors.push(...validateNameRule(named.name, dns1123SubdomainErrors, `${at}.${own}.name`));
  }
  if (own === 'serviceAccount') {
    const namespace = subject.serviceAccount?.namespace;
    const path = `${at}.serviceAccount.namespace`;
    if (!isSet(namespace)) errors.push(fieldError.required(path, 'must specify namespace for service account'));
    else errors.push(...validateNameRule(namespace, dns1123LabelErrors, path));
  }
  return errors;
}

function validateList(values: readonly string[] | undefined, path: string, noun: string): FieldError[] {
  if ((values ?? []).length === 0) {
    const detail = `resource rules must supply at least one ${noun.slice(0, -1)}`;
    return [fieldError.required(path, noun === 'verbs' ? 'verbs must contain at least one value' : detail)];
  }
  return (values ?? []).includes('*') && (values ?? []).length > 1
    ? [fieldError.invalid(path, values, `if '*' is present, must not specify other ${noun}`)]
    : [];
}

/** Validates the verbs of a rule. As upstream, verbs of non-resource rules are checked against the resource verbs. */
function validateVerbs(verbs: readonly string[] | undefined, path: string): FieldError[] {
  const errors = validateList(verbs, path, 'verbs');
  if (errors.length > 0 || verbs?.includes('*') === true) return errors;
  const unknown = (verbs ?? []).filter((verb) => !VERBS.includes(verb));
  return unknown.length === 0 ? [] : [fieldError.notSupported(path, verbs, VERBS.toSorted())];
}

function validateResourceRule(rule: ResourcePolicyRule, at: string): FieldError[] {
  const errors = [
    ...validateVerbs(rule.verbs, `${at}.verbs`),
    ...validateList(rule.apiGroups, `${at}.apiGroups`, 'api groups'),
    ...validateList(rule.resources, `${at}.resources`, 'resources'),
  ];
  const namespaces = rule.namespaces ?? [];
  if (namespaces.length === 0 && rule.clusterScope !== true) {
    errors.push(
      fieldError.required(
        `${at}.namespaces`,
        'resource rules that are not cluster scoped must supply at least one namespace',
      ),
    );
  } else if (namespaces.includes('*')) {
    if (namespaces.length > 1) {
      errors.push(
        fieldError.invalid(`${at}.namespaces`, namespaces, "if '*' is present, must not specify other namespaces"),
      );
    }
  } else {
    namespaces.forEach((namespace, index) => {
      for (const message of dns1123LabelErrors(namespace)) {
        const detail = `each member of this list must be '*' or a DNS-1123 label; ${message}`;
        errors.push(fieldError.invalid(`${at}.namespaces[${index}]`, namespace, detail));
      }
    });
  }
  return errors;
}

function validateNonResourceRule(rule: NonResourcePolicyRule, at: string): FieldError[] {
  const errors = validateVerbs(rule.verbs, `${at}.verbs`);
  const urls = rule.nonResourceURLs ?? [];
  const path = `${at}.nonResourceURLs`;
  if (urls.length === 0) errors.push(fieldError.required(path, 'nonResourceURLs must contain at least one value'));
  if (urls.includes('*')) {
    if (urls.length > 1) {
      errors.push(fieldError.invalid(path, urls, "if '*' is present, must not specify other non-resource URLs"));
    }
    return errors;
  }
  urls.forEach((url, index) => {
    const place = `${path}[${index}]`;
    if (url === '') errors.push(fieldError.invalid(place, url, 'must not be empty'));
    else if (!url.startsWith('/')) errors.push(fieldError.invalid(place, url, 'must start with slash'));
    else if (url.includes(' ')) errors.push(fieldError.invalid(place, url, 'must not contain white-space'));
    else if (url.includes('//')) errors.push(fieldError.invalid(place, url, 'must not contain double slash'));
    else if (url.slice(0, -1).includes('*') || (url.endsWith('*') && !url.endsWith('/*'))) {
      errors.push(fieldError.invalid(place, url, 'wildcard can only do suffix matching'));
    }
  });
  return errors;
}
