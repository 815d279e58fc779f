/**
 * Parser for Prometheus templates. It supports what the rules of this product use: `{{ $labels.NAME }}` and `{{ $value
 * }}`.
 */
import { CodedError } from '../../base/errors.ts';
import type { Labels } from './samples.ts';

export type Template = (labels: Labels, value: number) => string;

const FIELD = /\{\{\s*\$(labels\.([a-zA-Z_]\w*)|value)\s*\}\}/g;

/** Parses a template. Throws CodedError 'bad-rule' if it contains another field. */
export function parseTemplate(text: string): Template {
  const [unknown] = /\{\{[^}]*\}?\}?/.exec(text.replaceAll(FIELD, '')) ?? [];
  if (unknown !== undefined) throw new CodedError('bad-rule', `${text}: ${unknown} is not supported`);
  return (labels, value) =>
    text.replaceAll(FIELD, (_, field: string, label: string) =>
      field === 'value' ? String(value) : (labels.get(label) ?? ''),
    );
}
