/** Paths of webhooks, built as client-go's REST client does. Source: k8s.io/client-go/rest, Go's path and net/url. */

/** Makes a path absolute and removes repeated and trailing slashes, `.` and `..`. */
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

export const escapedPath = (path: string): string =>
  encodeURI(path).replace(FURTHER, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

/** Path of a URL, joined and escaped. */
export function pathOfUrl({ pathname }: URL): string {
  let plain = pathname;
  try {
    plain = decodeURIComponent(pathname);
  } catch {
    // The path has an escape that is not UTF-8, so it is sent unchanged.
    return joinedPath(pathname);
  }
  return escapedPath(joinedPath(plain));
}
