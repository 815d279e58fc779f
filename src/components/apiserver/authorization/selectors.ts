/**
 * Selectors as those see them who decide about requests. Source:
 * k8s.io/apiserver/pkg/endpoints/filters/authorization.go; KEP-4601.
 */
import { parseFieldSelector, parseLabelSelector } from '../../../base/selector.ts';
import type { ResourceAction, SelectorTerm } from '../../../core/authz/types.ts';

type Selectors = Pick<ResourceAction, 'fields' | 'labels'>;

/** The verbs whose requests may have selectors that count. */
const SELECTING_VERBS: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection']);

const LABEL_OPERATORS: Readonly<Record<string, SelectorTerm['operator'] | undefined>> = {
  in: 'In',
  '=': 'In',
  notin: 'NotIn',
  '!=': 'NotIn',
  exists: 'Exists',
  '!': 'DoesNotExist',
};

/** Of a request. What cannot be read narrows nothing. */
export function selectorsOf(
  verb: string,
  fields: string | null | undefined,
  labels: string | null | undefined,
): Selectors {
  if (!SELECTING_VERBS.has(verb)) return {};
  const byField = attempt(fieldTerms, fields);
  const byLabel = attempt(labelTerms, labels);
  return {
    ...(byField.length === 0 ? {} : { fields: byField }),
    ...(byLabel.length === 0 ? {} : { labels: byLabel }),
  };
}

/** In the order of their text, as upstream. Throws a CodedError. */
export function fieldTerms(text: string): SelectorTerm[] {
  const inOrder = parseFieldSelector(text).map(({ field, operator, value }) => ({
    text: `${field}${operator}${value}`,
    term: { key: field, operator: operator === '=' ? ('In' as const) : ('NotIn' as const), values: [value] },
  }));
  return inOrder.sort((a, b) => (a.text < b.text ? -1 : 1)).map(({ term }) => term);
}

/** Without numeric comparisons, which authorizers do not support. Throws a CodedError. */
export function labelTerms(text: string): SelectorTerm[] {
  return parseLabelSelector(text).requirements.flatMap(({ key, operator, values }) => {
    const known = LABEL_OPERATORS[operator];
    return known === undefined ? [] : [{ key, operator: known, values }];
  });
}

function attempt(parse: (text: string) => SelectorTerm[], text: string | null | undefined): SelectorTerm[] {
  if (text === null || text === undefined || text === '') return [];
  try {
    return parse(text);
  } catch {
    return [];
  }
}
