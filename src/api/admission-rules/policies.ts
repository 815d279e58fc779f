/**
 * Validation and defaults that validating and mutating admission policies, and their bindings, share. Source:
 * k8s.io/kubernetes/pkg/apis/admissionregistration/{v1,validation}.
 */

import { dns1035LabelErrors, dns1123SubdomainErrors, pathSegmentErrors } from '../../base/names.ts';
import type {
  MatchCondition,
  MatchResources,
  ParamKind,
  ParamRef,
  Variable,
} from '../generated/admissionregistration/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateNameRule, validateOneOf, validateOptionalOneOf } from '../validation/scalars.ts';
import { validateLabelSelector } from '../validation/selectors.ts';
import { setMatchDefaults, validateMatchConditions, validateMatchResources } from './rules.ts';

export interface PolicySpec {
  failurePolicy?: string;
  paramKind?: ParamKind;
  matchConstraints?: MatchResources;
  matchConditions?: MatchCondition[];
  variables?: Variable[];
}

export interface BindingSpec {
  policyName?: string;
  paramRef?: ParamRef;
  matchResources?: MatchResources;
}

const MUTATED_OPERATIONS = ['*', 'CONNECT', 'CREATE', 'UPDATE'];
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
const RESERVED = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

export function setPolicyDefaults(spec: PolicySpec): void {
  spec.failurePolicy ??= 'Fail';
  if (spec.matchConstraints !== undefined) setMatchDefaults(spec.matchConstraints);
}

export function setBindingDefaults({ matchResources, paramRef }: BindingSpec = {}): void {
  if (matchResources !== undefined) setMatchDefaults(matchResources);
  if (paramRef !== undefined) paramRef.parameterNotFoundAction ??= 'Deny';
}

export function validatePolicyBasics(spec: PolicySpec): FieldError[] {
  const errors = validateOptionalOneOf(spec.failurePolicy, ['Fail', 'Ignore'], 'spec.failurePolicy');
  if (spec.paramKind !== undefined) errors.push(...validateParamKind(spec.paramKind, 'spec.paramKind'));
  const match = spec.matchConstraints;
  if (match === undefined) errors.push(fieldError.required('spec.matchConstraints'));
  else {
    errors.push(...validateMatchResources(match, 'spec.matchConstraints'));
    if ((match.resourceRules ?? []).length === 0)
      errors.push(fieldError.required('spec.matchConstraints.resourceRules'));
  }
  errors.push(...validateMatchConditions(spec.matchConditions, 'spec.matchConditions'));
  errors.push(...validateVariables(spec.variables ?? []));
  return errors;
}

function validateParamKind({ apiVersion, kind }: ParamKind, path: string): FieldError[] {
  const errors = validateParamVersion(apiVersion ?? '', `${path}.apiVersion`);
  if (!isSet(kind)) return [...errors, fieldError.required(`${path}.kind`)];
  const wrong = dns1035LabelErrors(kind.toLowerCase());
  if (wrong.length === 0) return errors;
  const detail = `may have mixed case, but should otherwise match: ${wrong.join(',')}`;
  return [...errors, fieldError.invalid(`${path}.kind`, kind, detail)];
}

function validateParamVersion(apiVersion: string, path: string): FieldError[] {
  if (apiVersion === '') return [fieldError.required(path)];
  const parts = apiVersion === '/' ? [''] : apiVersion.split('/');
  if (parts.length > 2) return [fieldError.invalid(path, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)];
  const [version = '', group = ''] = parts.toReversed();
  const joined = (value: string, wrong: readonly string[]): FieldError[] =>
    wrong.length === 0 ? [] : [fieldError.invalid(path, value, wrong.join(','))];
  return [
    ...(group === '' ? [] : joined(group, dns1123SubdomainErrors(group))),
    ...(version === ''
      ? [fieldError.invalid(path, apiVersion, 'version must be specified')]
      : joined(version, dns1035LabelErrors(version))),
  ];
}

function validateVariables(variables: readonly Variable[]): FieldError[] {
  const names = new Set<string>();
  return variables.flatMap(({ name, expression }, index) => {
    const at = `spec.variables[${index}]`;
    const errors: FieldError[] = [];
    if (!isSet(name?.trim())) errors.push(fieldError.required(`${at}.name`, 'name is not specified'));
    else if (!IDENTIFIER.test(name) || RESERVED.has(name)) {
      errors.push(fieldError.invalid(`${at}.name`, name, 'must be a valid CEL identifier'));
    } else if (names.has(name)) errors.push(fieldError.duplicate(`${at}.name`, name));
    names.add(name);
    if (!isSet(expression?.trim())) errors.push(fieldError.required(`${at}.expression`, 'expression is not specified'));
    return errors;
  });
}

/**
 * Rejects the operation DELETE, because a deleted object cannot be mutated. As upstream, the error path has no index.
 */
export function validateMutatedOperations(match: MatchResources | undefined, path: string): FieldError[] {
  return (match?.resourceRules ?? []).flatMap(({ operations }) =>
    (operations ?? []).flatMap((operation) =>
      validateOneOf(operation, MUTATED_OPERATIONS, `${path}.resourceRules.operations`),
    ),
  );
}

export function validateBindingBasics(spec: BindingSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (!isSet(spec.policyName)) errors.push(fieldError.required('spec.policyName'));
  else errors.push(...validateNameRule(spec.policyName, dns1123SubdomainErrors, 'spec.policyName'));
  if (spec.paramRef !== undefined) errors.push(...validateParamRef(spec.paramRef));
  errors.push(...validateMatchResources(spec.matchResources, 'spec.matchResources'));
  return errors;
}

function validateParamRef(ref: ParamRef): FieldError[] {
  const at = 'spec.paramRef';
  const errors: FieldError[] = [];
  const { name, selector } = ref;
  const exclusive = (field: string): FieldError[] =>
    isSet(name) && selector !== undefined
      ? [fieldError.forbidden(`${at}.${field}`, 'name and selector are mutually exclusive')]
      : [];
  if (isSet(name)) errors.push(...validateNameRule(name, pathSegmentErrors, `${at}.name`), ...exclusive('name'));
  if (selector !== undefined) {
    errors.push(...validateLabelSelector(selector, `${at}.selector`), ...exclusive('selector'));
  } else if (!isSet(name)) errors.push(fieldError.required(at, 'one of name or selector must be specified'));
  if (!isSet(ref.parameterNotFoundAction)) {
    errors.push(fieldError.required(`${at}.parameterNotFoundAction`));
  } else {
    errors.push(...validateOneOf(ref.parameterNotFoundAction, ['Deny', 'Allow'], `${at}.parameterNotFoundAction`));
  }
  return errors;
}

export function paramKindText(kind: ParamKind | undefined): string {
  return kind === undefined ? '<unset>' : `${kind.apiVersion ?? ''}/${kind.kind ?? ''}`;
}

export function paramRefText(ref: ParamRef | undefined): string {
  if (ref === undefined) return '<unset>';
  const name = ref.selector === undefined ? (ref.name ?? '') : '*';
  return isSet(ref.namespace) ? `${ref.namespace}/${name}` : name;
}
