/** `describe` of kinds without a specific page: every field with a readable title. */
import type { AnyObject } from '../core/objects.ts';
import { type Events, labelLines, Page } from './page.ts';

const SKIPPED: ReadonlySet<string> = new Set([
  '.metadata.managedFields',
  '.metadata.name',
  '.metadata.namespace',
  '.metadata.labels',
  '.metadata.annotations',
]);
const ACRONYMS: ReadonlySet<string> = new Set(['API', 'URL', 'UID', 'GUID']);

export function describeAny(object: AnyObject, events: Events, now: number): string {
  const page = new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `Namespace:\t${object.metadata?.namespace ?? ''}`);
  fields(labelLines(page, object), 0, object, '');
  return page.events(events, now).toString();
}

function fields(page: Page, level: number, content: object, path: string): void {
  for (const [field, value] of Object.entries(content).sort(([left], [right]) => (left < right ? -1 : 1))) {
    const own = `${path}.${field}`;
    if (SKIPPED.has(own) || value === undefined) continue;
    if (Array.isArray(value)) {
      page.line(level, `${titleOf(field)}:`);
      for (const item of value)
        if (isObject(item)) fields(page, level + 1, item, own);
        else page.line(level + 1, goText(item));
    } else if (isObject(value)) {
      page.line(level, `${titleOf(field)}:`);
      fields(page, level + 1, value, own);
    } else page.line(level, `${titleOf(field)}:\t${goText(value)}`);
  }
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const goText = (value: unknown): string => (value === null ? '<nil>' : String(value));

/** Title of a field: `creationTimestamp` → `Creation Timestamp`, `podIP` → `Pod IP`, `apiVersion` → `API Version`. */
export function titleOf(field: string): string {
  if (/[^\p{L}-]/u.test(field)) return field;
  const parts = field.match(/\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?\p{Ll}+|\p{Lu}+|-/gu) ?? [field];
  return parts
    .map((part) =>
      ACRONYMS.has(part.toUpperCase())
        ? part.toUpperCase()
        : part.toLowerCase() === part
          ? part.charAt(0).toUpperCase() + part.slice(1)
          : part,
    )
    .join(' ');
}
