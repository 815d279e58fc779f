/** Namespaces that the user may read, and the choice of one of them. */
import { useEffect } from 'preact/hooks';
import { isApiError } from '../../api/meta/status.ts';
import { NAMESPACES, PROJECTS } from '../data/api/resources.ts';
import { currentPlace, setQuery } from '../shell/router.ts';
import { useFeed } from './hooks.ts';

/** Namespace in the query of the location; '' for all namespaces. */
export const currentNamespace = (): string => currentPlace.value.query.get('ns') ?? '';

export interface ReadableNamespaces {
  /** Sorted names; undefined while they are read, or if the server does not list them. */
  readonly names: readonly string[] | undefined;
  /** Whether the user may read some namespaces only. */
  readonly isLimited: boolean;
}

/** Users who may not list namespaces get their projects, which the server selects by their roles. */
export function useNamespaces(): ReadableNamespaces {
  const all = useFeed(NAMESPACES);
  const isLimited = all.version === 0 && isApiError(all.error, 'Forbidden');
  const own = useFeed(isLimited ? PROJECTS : undefined);
  const { items, version } = isLimited ? own : all;
  const names = version === 0 ? undefined : items.map(({ metadata }) => metadata?.name ?? '').sort();
  return { names, isLimited };
}

/**
 * Choice of the namespace in the query of the location. Users who may read some namespaces only start with the first
 * one, because the server refuses them the lists of all namespaces.
 */
export function NamespaceChoice() {
  const { names = [], isLimited } = useNamespaces();
  const current = currentNamespace();
  const [first] = names;
  useEffect(() => {
    if (isLimited && current === '' && first !== undefined) setQuery('ns', first);
  }, [isLimited, current, first]);
  if (isLimited && first === undefined)
    return (
      <label>
        Namespace <input value={current} onChange={({ currentTarget }) => setQuery('ns', currentTarget.value.trim())} />
      </label>
    );
  return (
    <label>
      Namespace{' '}
      <select value={current} onChange={({ currentTarget }) => setQuery('ns', currentTarget.value)}>
        {isLimited ? null : <option value="">all</option>}
        {current !== '' && !names.includes(current) ? <option value={current}>{current}</option> : null}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
