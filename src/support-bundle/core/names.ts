/** Creates names of files in a bundle. They are derived from names that users and programs have chosen. */

const MAX_PART = 100;
const MAX_PARTS = 16;

/** Relative path of plain characters without `..`, even if the parts contain `../x` or `a/b:c`, or are empty. */
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

/** Returns a function that makes paths unique, because different names may result in the same path. */
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
