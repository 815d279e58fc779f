/** Paths of webhooks, as client-go's REST client makes them. Source: k8s.io/client-go/rest, Go's path and net/url. */

/** Joins a path to the root: repeated and final slashes, `.` and `..` vanish. */
export function joinedPath(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment === '..') kept.pop();
    else kept.push(segment);
  }
  return `/${kept.join('/')}`;
}

/** Characters that Go's url.URL escapes in a path although encodeURI does not. */
const FURTHER = /[!'()*?#]/g;

/** The path as it is sent; `path` is not escaped. */
export const escapedPath = (path: string): string =>
  encodeURI(path).replace(FURTHER, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

/** The path of a URL, joined and escaped. */
export function pathOfUrl({ pathname }: URL): string {
  let plain = pathname;
  try {
    plain = decodeURIComponent(pathname);
  } catch {
    // An escape that is no UTF-8 is sent as it is.
    return joinedPath(pathname);
  }
  return escapedPath(joinedPath(plain));
}
