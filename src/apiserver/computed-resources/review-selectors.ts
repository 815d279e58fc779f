/** Selectors of access reviews. Source: k8s.io/kubernetes/pkg/registry/authorization/util. */
import type { SelectingAttributes, WrittenSelector } from '../../api/kinds/identity/reviews/selectors.ts';
import { fieldTerms, labelTerms } from '../authorization/selectors.ts';
import type { SelectorTerm } from '../core/authorization/types.ts';

type SelectorName = 'fieldSelector' | 'labelSelector';

interface Understood {
  readonly terms: readonly SelectorTerm[];
  /** True if a requirement was omitted, so that the review covers more objects. */
  readonly partial: boolean;
}

/** Selectors of a review as authorizers receive them, and their errors in upstream's wording. */
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

type Requirement = NonNullable<WrittenSelector['requirements']>[number];

function understood(
  written: WrittenSelector | undefined,
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

/** A field requirement with a single value, as in selectors of requests. */
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
