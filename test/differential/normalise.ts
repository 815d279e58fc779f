/** Replaces values that two servers may choose differently: UIDs, revisions, times, tokens, generated names. */

type Value = unknown;
type Fields = Record<string, Value>;

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
/** Random suffix of a name from `generateName`. */
const SUFFIX = /[a-z0-9]{5}$/;

function isFields(value: Value): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Token volumes have random names. */
const TOKEN_VOLUME = /\bkube-api-access-[a-z0-9]{5}\b/g;

const unnamed = (text: string): string =>
  text.replaceAll(UUID, '<uid>').replaceAll(TOKEN_VOLUME, 'kube-api-access-<suffix>');

/** A copy of `value` with placeholders for everything that a server chooses. */
export function normalise(value: Value): Value {
  if (typeof value === 'string') return TIME.test(value) ? '<time>' : unnamed(value);
  if (Array.isArray(value)) return value.map(normalise);
  if (!isFields(value)) return value;
  const copy: Fields = {};
  for (const name of Object.keys(value).toSorted()) {
    const each = value[name];
    if (name === 'resourceVersion' && typeof each === 'string') copy[name] = /^[1-9]/.test(each) ? '<revision>' : each;
    else if (name === 'continue' && typeof each === 'string') copy[name] = '<continue>';
    else if (name === 'metadata' && isFields(each)) copy[name] = normaliseMetadata(each);
    else copy[unnamed(name)] = normalise(each);
  }
  return copy;
}

function normaliseMetadata(metadata: Fields): Value {
  const copy = normalise(metadata) as Fields;
  const { generateName, name } = copy;
  if (typeof generateName === 'string' && typeof name === 'string' && name.startsWith(generateName))
    copy['name'] = name.replace(SUFFIX, '<suffix>');
  // The entries are stored by age in whole seconds, so their order may differ.
  const { managedFields } = copy;
  if (Array.isArray(managedFields)) copy['managedFields'] = managedFields.toSorted(byOwner);
  return copy;
}

function byOwner(a: Value, b: Value): number {
  const owner = (entry: Value): string => {
    const { manager, operation, apiVersion, subresource } = entry as Fields;
    return JSON.stringify([operation, manager, apiVersion, subresource]);
  };
  return owner(a) < owner(b) ? -1 : 1;
}

export interface Difference {
  readonly path: string;
  readonly left: Value;
  readonly right: Value;
}

/** Differences field by field. */
export function* differences(left: Value, right: Value, path = ''): Generator<Difference> {
  if (Object.is(left, right)) return;
  if (Array.isArray(left) && Array.isArray(right)) {
    for (let at = 0; at < Math.max(left.length, right.length); at++)
      yield* differences(left[at], right[at], `${path}[${at}]`);
  } else if (isFields(left) && isFields(right)) {
    for (const name of new Set([...Object.keys(left), ...Object.keys(right)]))
      yield* differences(left[name], right[name], path === '' ? name : `${path}.${name}`);
  } else yield { path, left, right };
}
