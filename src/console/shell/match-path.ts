/**
 * Compares a path with a pattern. `:name` matches one segment; `:name?` matches an optional last segment; `*` matches
 * the rest, which becomes the parameter `rest`. Returns the decoded parameters, or undefined if the path does not
 * match.
 */
export function matchPath(pattern: string, path: string): Readonly<Record<string, string>> | undefined {
  const wanted = segmentsOf(pattern);
  const given = segmentsOf(path);
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    if (part === '*') {
      params['rest'] = given.slice(index).join('/');
      return params;
    }
    const value = given[index];
    const optional = part.endsWith('?');
    if (value === undefined) {
      if (!optional) return undefined;
      continue;
    }
    if (part.startsWith(':')) {
      const decoded = decode(value);
      if (decoded === undefined) return undefined;
      params[part.slice(1, optional ? -1 : undefined)] = decoded;
    } else if (part !== value) return undefined;
  }
  return given.length <= wanted.length ? params : undefined;
}

const segmentsOf = (path: string): string[] => path.split('/').filter((each) => each !== '');

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
