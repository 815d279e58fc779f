/** Names of files in a bundle, from names that others have chosen. */

const MAX_PART = 100;
const MAX_PARTS = 16;

/** A relative path of plain characters without `..`, also for names such as `../x`, `a/b:c` or an empty one. */
export function safePath(...parts: readonly string[]): string {
  const plain = parts
    .flatMap((part) => part.split('/'))
    .filter((part) => part !== '')
    .slice(0, MAX_PARTS)
    .map(safePart);
  return plain.length === 0 ? '_' : plain.join('/');
}

function safePart(part: string): string {
  const plain = part.replaceAll(/[^A-Za-z0-9._=@+-]/g, '_').replace(/^[.-]+/, '_');
  if (plain.length <= MAX_PART) return plain;
  const extension = /\.[a-z]{1,8}$/.exec(plain)?.[0] ?? '';
  return plain.slice(0, MAX_PART - extension.length) + extension;
}

/** Makes each path unique, because different names may have become equal. */
export function uniquePaths(): (path: string) => string {
  const used = new Set<string>();
  return (path) => {
    let found = path;
    for (let number = 2; used.has(found.toLowerCase()); number += 1)
      found = path.replace(/(\.[a-z]{1,8})?$/, `~${number}$1`);
    used.add(found.toLowerCase());
    return found;
  };
}
