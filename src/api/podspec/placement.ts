/**
 * Validation of scheduling fields: affinity, tolerations, topology spread. Source:
 * k8s.io/kubernetes/pkg/apis/core/validation.
 */

import { dns1123LabelErrors, dns1123SubdomainErrors, labelValueErrors, qualifiedNameErrors } from '../../base/names.ts';
import type {
  Affinity,
  NodeSelector,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
  Toleration,
  TopologySpreadConstraint,
} from '../generated/core/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateNameRule, validateOneOf, validateOptionalOneOf } from '../validation/scalars.ts';
import { validateLabelSelector } from '../validation/selectors.ts';
import { validateLabelKeys } from './label-keys.ts';

const ACTIONS = ['DoNotSchedule', 'ScheduleAnyway'];
const NOT_POSITIVE = 'must be greater than zero';
const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

export function validateTolerations(tolerations: readonly Toleration[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  (tolerations ?? []).forEach((toleration, index) => {
    const at = `${path}[${index}]`;
    const { key, operator, value, effect, tolerationSeconds } = toleration;
    if (isSet(key)) errors.push(...validateNameRule(key, qualifiedNameErrors, `${at}.key`));
    else if (operator !== 'Exists') {
      errors.push(
        fieldError.invalid(
          `${at}.operator`,
          operator ?? '',
          'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      errors.push(
        fieldError.invalid(`${at}.effect`, effect ?? '', "effect must be 'NoExecute' when `tolerationSeconds` is set"),
      );
    }
    if (operator === 'Exists') {
      if (isSet(value)) {
        errors.push(
          fieldError.invalid(`${at}.operator`, toleration, "value must be empty when `operator` is 'Exists'"),
        );
      }
    } else if (operator === 'Equal' || !isSet(operator)) {
      const wrong = labelValueErrors(value ?? '');
      if (wrong.length > 0) errors.push(fieldError.invalid(`${at}.operator`, value, wrong.join(';')));
    } else if (operator === 'Gt' || operator === 'Lt') {
      if (!/^(?:0|-?[1-9]\d{0,18})$/.test(value ?? '')) {
        errors.push(fieldError.invalid(`${at}.value`, value ?? '', 'must be an integer'));
      }
    } else {
      errors.push(fieldError.notSupported(`${at}.operator`, operator, ['Equal', 'Exists']));
    }
    if (isSet(effect)) errors.push(...validateOneOf(effect, EFFECTS, `${at}.effect`));
  });
  return errors;
}

export function validateAffinity(affinity: Affinity | undefined, path: string): FieldError[] {
  if (affinity === undefined) return [];
  const errors: FieldError[] = [];
  const node = affinity.nodeAffinity;
  if (node?.requiredDuringSchedulingIgnoredDuringExecution !== undefined) {
    errors.push(
      ...validateNodeSelector(
        node.requiredDuringSchedulingIgnoredDuringExecution,
        `${path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`,
      ),
    );
  }
  (node?.preferredDuringSchedulingIgnoredDuringExecution ?? []).forEach((preferred, index) => {
    const at = `${path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
    errors.push(...validateWeight(preferred.weight, `${at}.weight`));
    errors.push(...validateNodeSelectorTerm(preferred.preference ?? {}, `${at}.preference`, { strict: false }));
  });
  errors.push(...validatePodAffinity(affinity.podAffinity, `${path}.podAffinity`));
  errors.push(...validatePodAffinity(affinity.podAntiAffinity, `${path}.podAntiAffinity`));
  return errors;
}

/** Validates a node selector. Node selectors also exist outside of pods, for example in volumes. */
export function validateNodeSelector(selector: NodeSelector, path: string): FieldError[] {
  const terms = selector.nodeSelectorTerms ?? [];
  if (terms.length === 0) {
    return [fieldError.required(`${path}.nodeSelectorTerms`, 'must have at least one node selector term')];
  }
  return terms.flatMap((term, index) =>
    validateNodeSelectorTerm(term, `${path}.nodeSelectorTerms[${index}]`, { strict: true }),
  );
}

/**
 * Validates a term of a node selector. `strict`: values must be valid label values. It is false for preferred terms,
 * which may have values that no node can have.
 */
function validateNodeSelectorTerm(
  term: NodeSelectorTerm,
  path: string,
  { strict }: { readonly strict: boolean },
): FieldError[] {
  const errors: FieldError[] = [];
  (term.matchExpressions ?? []).forEach((expression, index) => {
    const at = `${path}.matchExpressions[${index}]`;
    const values = expression.values ?? [];
    switch (expression.operator) {
      case 'In':
      case 'NotIn':
        if (values.length === 0) {
          errors.push(fieldError.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        break;
      case 'Exists':
      case 'DoesNotExist':
        if (values.length > 0) {
          errors.push(
            fieldError.forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
          );
        }
        break;
      case 'Gt':
      case 'Lt':
        if (values.length !== 1) {
          errors.push(
            fieldError.required(`${at}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"),
          );
        }
        break;
      default:
        errors.push(fieldError.invalid(`${at}.operator`, expression.operator ?? '', 'not a valid selector operator'));
    }
    errors.push(...validateNameRule(expression.key ?? '', qualifiedNameErrors, `${at}.key`));
    if (!strict) return;
    values.forEach((value, valueIndex) => {
      errors.push(...validateNameRule(value, labelValueErrors, `${at}.values[${valueIndex}]`));
    });
  });
  (term.matchFields ?? []).forEach((requirement, index) => {
    const at = `${path}.matchFields[${index}]`;
    const values = requirement.values ?? [];
    if (requirement.operator !== 'In' && requirement.operator !== 'NotIn') {
      errors.push(fieldError.invalid(`${at}.operator`, requirement.operator ?? '', 'not a valid selector operator'));
    } else if (values.length !== 1) {
      errors.push(
        fieldError.required(
          `${at}.values`,
          "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        ),
      );
    }
    if (requirement.key !== 'metadata.name') {
      errors.push(fieldError.invalid(`${at}.key`, requirement.key ?? '', 'not a valid field selector key'));
    } else {
      values.forEach((value, valueIndex) => {
        errors.push(...validateNameRule(value, dns1123SubdomainErrors, `${at}.values[${valueIndex}]`));
      });
    }
  });
  return errors;
}

function validatePodAffinity(affinity: PodAffinity | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  (affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).forEach((term, index) => {
    errors.push(...validatePodAffinityTerm(term, `${path}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`));
  });
  (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).forEach((preferred, index) => {
    const at = `${path}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
    errors.push(...validateWeight(preferred.weight, `${at}.weight`));
    errors.push(...validatePodAffinityTerm(preferred.podAffinityTerm, `${at}.podAffinityTerm`));
  });
  return errors;
}

function validatePodAffinityTerm(term: PodAffinityTerm | undefined, path: string): FieldError[] {
  const errors = validateLabelSelector(term?.labelSelector, `${path}.labelSelector`);
  errors.push(...validateLabelSelector(term?.namespaceSelector, `${path}.namespaceSelector`));
  for (const name of term?.namespaces ?? []) {
    errors.push(...validateNameRule(name, dns1123LabelErrors, `${path}.namespace`));
  }
  errors.push(...validateLabelKeys(term ?? {}, path));
  const key = term?.topologyKey ?? '';
  if (key === '') errors.push(fieldError.required(`${path}.topologyKey`, 'can not be empty'));
  errors.push(...validateNameRule(key, qualifiedNameErrors, `${path}.topologyKey`));
  return errors;
}

function validateWeight(weight: number | undefined, path: string): FieldError[] {
  return (weight ?? 0) < 1 || (weight ?? 0) > 100
    ? [fieldError.invalid(path, weight ?? 0, 'must be in the range 1-100')]
    : [];
}

export function validateTopologySpread(
  constraints: readonly TopologySpreadConstraint[] | undefined,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const pairOf = (each: TopologySpreadConstraint) => `{${each.topologyKey ?? ''}, ${each.whenUnsatisfiable ?? ''}}`;
  /** Last index of each pair of topologyKey and whenUnsatisfiable. Earlier occurrences are reported as duplicates. */
  const last = new Map((constraints ?? []).map((each, index) => [pairOf(each), index]));
  (constraints ?? []).forEach((constraint, index) => {
    const at = `${path}[${index}]`;
    const { maxSkew = 0, topologyKey, whenUnsatisfiable: action = '' as const, minDomains } = constraint;
    if (maxSkew <= 0) errors.push(fieldError.invalid(`${at}.maxSkew`, maxSkew, NOT_POSITIVE));
    if (!isSet(topologyKey)) errors.push(fieldError.required(`${at}.topologyKey`, 'can not be empty'));
    if (!ACTIONS.includes(action)) errors.push(fieldError.notSupported(`${at}.whenUnsatisfiable`, action, ACTIONS));
    const pair = pairOf(constraint);
    if (last.get(pair) !== index) errors.push(fieldError.duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair));
    if (minDomains !== undefined) {
      const wrong = (why: string) => errors.push(fieldError.invalid(`${at}.minDomains`, minDomains, why));
      if (minDomains <= 0) wrong(NOT_POSITIVE);
      if (action !== 'DoNotSchedule') {
        wrong(`can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`);
      }
    }
    for (const field of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      errors.push(...validateOptionalOneOf(constraint[field], ['Honor', 'Ignore'], `${at}.${field}`));
    }
    errors.push(...validateLabelKeys(constraint, at));
    errors.push(...validateLabelSelector(constraint.labelSelector, `${at}.labelSelector`));
  });
  return errors;
}
