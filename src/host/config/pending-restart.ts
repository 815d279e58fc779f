/**
 * Changes of the bootstrap file that take effect only after a restart of the host process, which reads the file at its
 * start.
 */
import { messageOf } from '../../base/errors.ts';
import { readBootstrap } from './bootstrap-files.ts';

export interface PendingRestart {
  /** Changed fields, such as `logging.forward`. Values are omitted, because they may be secret. */
  readonly fields: readonly string[];
  /** Mistake in the file. With it, the host process could not start again. */
  readonly problem?: string;
}

const MAX_FIELDS = 20;

/**
 * Reads the bootstrap file. The returned function reads the file again and resolves with the changes, or with undefined
 * if there are none.
 */
export async function watchBootstrap(file: string): Promise<() => Promise<PendingRestart | undefined>> {
  const started = await documentOf(file);
  return async () => {
    const now = await documentOf(file);
    if (now.problem !== undefined)
      return now.problem === started.problem ? undefined : { fields: [], problem: now.problem };
    const fields = changedFields(started.document, now.document);
    return fields.length === 0 ? undefined : { fields: fields.slice(0, MAX_FIELDS) };
  };
}

async function documentOf(file: string): Promise<{ readonly document?: unknown; readonly problem?: string }> {
  try {
    return { document: (await readBootstrap(file))?.file };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/** Paths of changed fields, sorted. A path has one name or two names, such as `roles` or `logging.forward`. */
export function changedFields(before: unknown, after: unknown): string[] {
  const [left, right] = [fieldsOf(before), fieldsOf(after)];
  return namesOf(left, right)
    .filter((name) => name !== 'apiVersion' && name !== 'kind')
    .flatMap((name) => {
      const [old, now] = [left.get(name), right.get(name)];
      if (textOf(old) === textOf(now)) return [];
      const [inOld, inNow] = [fieldsOf(old), fieldsOf(now)];
      const inner = namesOf(inOld, inNow).filter((each) => textOf(inOld.get(each)) !== textOf(inNow.get(each)));
      return inner.length === 0 ? [name] : inner.map((each) => `${name}.${each}`);
    })
    .sort();
}

const namesOf = (...groups: readonly ReadonlyMap<string, unknown>[]): string[] => [
  ...new Set(groups.flatMap((each) => [...each.keys()])),
];

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> {
  if (value instanceof Map) return new Map([...value].map(([key, each]) => [String(key), each]));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map();
  return new Map(Object.entries(value));
}

/** JSON with sorted keys, so that equal values have equal texts. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) => {
    const fields = fieldsOf(each);
    return fields.size === 0
      ? each
      : Object.fromEntries([...fields].sort(([left], [right]) => (left < right ? -1 : 1)));
  }) ?? '';
