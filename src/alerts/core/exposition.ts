/** Parser for the Prometheus text format 0.0.4. Only the requested metrics are parsed. */
import type { Labels, Reading } from './samples.ts';

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/**
 * Samples of the metrics that `isWanted` selects. `more`: labels that are added to every sample and replace labels with
 * the same names. Invalid lines are ignored.
 */
export function* readingsOf(
  text: string,
  isWanted: (metric: string) => boolean,
  more: Labels,
): Generator<Reading, void, undefined> {
  let start = 0;
  while (start < text.length) {
    const newline = text.indexOf('\n', start);
    const end = newline < 0 ? text.length : newline;
    // Labels are parsed only if the metric is requested, because most metrics are not.
    if (text[start] !== '#' && isWanted(nameAt(text, start, end))) {
      const [, metric = '', labels = '', value = ''] = SAMPLE.exec(text.slice(start, end)) ?? [];
      const number = numberOf(value);
      if (metric !== '' && number !== undefined) yield { metric, labels: labelsOf(labels, more), value: number };
    }
    start = end + 1;
  }
}

function nameAt(text: string, start: number, end: number): string {
  let at = start;
  while (at < end && text[at] !== '{' && text[at] !== ' ' && text[at] !== '\t') at += 1;
  return text.slice(start, at);
}

function numberOf(text: string): number | undefined {
  if (text === '+Inf' || text === '-Inf') return text === '+Inf' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  if (text === 'NaN') return Number.NaN;
  const value = text === '' ? Number.NaN : Number(text);
  return Number.isNaN(value) ? undefined : value;
}

function labelsOf(text: string, more: Labels): Labels {
  const labels = new Map<string, string>();
  for (const [, name = '', value = ''] of text.matchAll(LABEL))
    labels.set(
      name,
      value.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped)),
    );
  for (const [name, value] of more) labels.set(name, value);
  return labels;
}
