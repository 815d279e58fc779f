/** Location of the console: the part of the path below `/console`, and the query. */
import { signal } from '@preact/signals';
import { matchPath } from './match-path.ts';
import type { Page } from './page.ts';

const BASE = '/console';

export interface Place {
  /** Path that begins with `/` and does not include `/console`. */
  readonly path: string;
  readonly query: URLSearchParams;
}

const here = (): Place => ({
  path: location.pathname.startsWith(`${BASE}/`) ? location.pathname.slice(BASE.length) : '/',
  query: new URLSearchParams(location.search),
});

export const currentPlace = signal<Place>(here());

/** URL path for the `href` of links to a path of the console. */
export const hrefOf = (path: string): string => `${BASE}${path}`;

/** Shows another view. With `replace`, the current history entry is replaced. */
export function navigate(path: string, { replace = false } = {}): void {
  history[replace ? 'replaceState' : 'pushState'](undefined, '', hrefOf(path));
  currentPlace.value = here();
  if (!replace) scrollTo(0, 0);
}

/** Changes one query parameter, such as a filter, without a history entry. Undefined removes the parameter. */
export function setQuery(name: string, value: string | undefined): void {
  const query = new URLSearchParams(currentPlace.value.query);
  if (value === undefined || value === '') query.delete(name);
  else query.set(name, value);
  const text = query.toString();
  navigate(`${currentPlace.value.path}${text === '' ? '' : `?${text}`}`, { replace: true });
}

export function startRouter(): void {
  addEventListener('popstate', () => {
    currentPlace.value = here();
  });
  document.addEventListener('click', (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (!link.pathname.startsWith(`${BASE}/`) || link.hash !== '') return;
    event.preventDefault();
    navigate(`${link.pathname.slice(BASE.length)}${link.search}`);
  });
}

export interface Found {
  readonly page: Page;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds the first page whose path matches. */
export function findPage(pages: readonly Page[], path: string): Found | undefined {
  for (const page of pages) {
    const params = matchPath(page.path, path);
    if (params !== undefined) return { page, params };
  }
  return undefined;
}
