/**
 * Selectors of requests in the form that authorizers receive. Source:
 * k8s.io/apiserver/pkg/endpoints/filters/authorization.go; KEP-4601.
 */
import { parseFieldSelector, parseLabelSelector } from '../../base/selector.ts';
import type { ResourceAction, SelectorTerm } from '../core/authorization/types.ts';

type Selectors = Pick<ResourceAction, 'fields' | 'labels'>;

/** Verbs for which selectors are passed to authorizers. */
const SELECTING_VERBS: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection']);

const LABEL_OPERATORS: Readonly<Record<string, SelectorTerm['operator'] | undefined>> = {
  in: 'In',
  '=': 'In',
  notin: 'NotIn',
  '!=': 'NotIn',
  exists: 'Exists',
  '!': 'DoesNotExist',
};

/** Selectors of a request. Requirements that cannot be parsed are ignored, so they never narrow the result. */
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

/** Requirements sorted by their text, as in upstream. Throws a CodedError. */
export function fieldTerms(text: string): SelectorTerm[] {
  const inOrder = parseFieldSelector(text).map(({ field, operator, value }) => ({
    text: `${field}${operator}${value}`,
    term: { key: field, operator: operator === '=' ? ('In' as const) : ('NotIn' as const), values: [value] },
  }));
  return inOrder.sort((a, b) => (a.text < b.text ? -1 : 1)).map(({ term }) => term);
}

/** Numeric comparisons are omitted because authorizers do not support them. Throws a CodedError. */
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
