/** Selectors of access reviews. Source: k8s.io/kubernetes/pkg/apis/authorization/validation, pkg/registry/authorization/util. */
import type { ResourceAttributes } from 'kubernetes-types/authorization/v1';
import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import { labelValueErrors, qualifiedNameErrors } from '../../../base/names.ts';
import type { SelectorTerm } from '../../../core/authz/types.ts';
import { fieldTerms, labelTerms } from '../authorization/selectors.ts';

interface Written {
  readonly rawSelector?: string;
  readonly requirements?: ReadonlyArray<{
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }>;
}

const SELECTORS = ['fieldSelector', 'labelSelector'] as const;
type SelectorName = (typeof SELECTORS)[number];

export type SelectingAttributes = ResourceAttributes & { readonly [name in SelectorName]?: Written };

/** What is wrong with the selectors. */
export function selectorErrors(attributes: SelectingAttributes, path: string): FieldError[] {
  return SELECTORS.flatMap((name) => {
    const written = attributes[name];
    return written === undefined ? [] : errorsOf(name, written, `${path}.${name}`);
  });
}

function errorsOf(name: SelectorName, { rawSelector = '', requirements = [] }: Written, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (rawSelector !== '' && requirements.length > 0)
    errors.push(
      fieldError.invalid(`${path}.rawSelector`, rawSelector, 'may not specified at the same time as requirements'),
    );
  if (rawSelector === '' && requirements.length === 0)
    errors.push(
      fieldError.required(`${path}.requirements`, `when ${path} is specified, requirements or rawSelector is required`),
    );
  for (const [index, { key, operator, values = [] }] of requirements.entries()) {
    const at = `${path}.requirements[${index}]`;
    if (name === 'fieldSelector' && key === '') errors.push(fieldError.required(`${at}.key`, 'must be specified'));
    if ((operator === 'In' || operator === 'NotIn') && values.length === 0)
      errors.push(fieldError.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0)
      errors.push(
        fieldError.forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
      );
    if (name === 'fieldSelector') continue;
    for (const what of qualifiedNameErrors(key)) errors.push(fieldError.invalid(`${at}.key`, key, what));
    for (const [place, value] of values.entries())
      for (const what of labelValueErrors(value))
        errors.push(fieldError.invalid(`${at}.values[${place}]`, value, what));
  }
  return errors;
}

interface Understood {
  readonly terms: readonly SelectorTerm[];
  /** Something was left out; that asks for more. */
  readonly partial: boolean;
}

/** What those see who decide, and what of the selectors they do not, in upstream's words. */
export function selectorTerms(attributes: SelectingAttributes): {
  readonly fields?: readonly SelectorTerm[];
  readonly labels?: readonly SelectorTerm[];
  readonly problems: readonly string[];
} {
  const fields = understood(attributes.fieldSelector, fieldTerms, fieldTermOf);
  const labels = understood(attributes.labelSelector, labelTerms, labelTermOf);
  const problem = (name: SelectorName, { terms, partial }: Understood): string[] =>
    partial
      ? [`spec.resourceAttributes.${name} ${terms.length > 0 ? 'partially ' : ''}ignored due to parse error`]
      : [];
  return {
    ...(fields.terms.length === 0 ? {} : { fields: fields.terms }),
    ...(labels.terms.length === 0 ? {} : { labels: labels.terms }),
    problems: [...problem('fieldSelector', fields), ...problem('labelSelector', labels)],
  };
}

type Requirement = NonNullable<Written['requirements']>[number];

function understood(
  written: Written | undefined,
  parse: (text: string) => SelectorTerm[],
  termOf: (requirement: Requirement) => SelectorTerm | undefined,
): Understood {
  const { rawSelector = '', requirements = [] } = written ?? {};
  if (requirements.length > 0) {
    const terms = requirements.flatMap((each) => termOf(each) ?? []);
    return { terms, partial: terms.length < requirements.length };
  }
  if (rawSelector === '') return { terms: [], partial: false };
  try {
    return { terms: parse(rawSelector), partial: false };
  } catch {
    return { terms: [], partial: true };
  }
}

/** Of one value, as selectors in requests have it. */
function fieldTermOf({ key, operator, values = [] }: Requirement): SelectorTerm | undefined {
  return (operator === 'In' || operator === 'NotIn') && values.length === 1 ? { key, operator, values } : undefined;
}

function labelTermOf({ key, operator, values = [] }: Requirement): SelectorTerm | undefined {
  switch (operator) {
    case 'In':
    case 'NotIn':
    case 'Exists':
    case 'DoesNotExist':
      return { key, operator, values };
    default:
      return undefined;
  }
}
