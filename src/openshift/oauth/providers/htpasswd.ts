/** Parses `htpasswd` files, which have one `user:hash` per line. */

/** Hash that no password matches. If the file is empty, it is verified instead, so that the response takes as long. */
const NO_HASH = '$2b$10$abcdefghijklmnopqrstuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu';

export interface Htpasswd {
  readonly hashes: ReadonlyMap<string, string>;
  /** The hash that takes longest to verify. It is verified for unknown users. */
  readonly costliest: string;
}

export function parseHtpasswd(text: string): Htpasswd {
  const hashes = new Map<string, string>();
  let costliest = '';
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0 || line.startsWith('#')) continue;
    const hash = line.slice(colon + 1).trim();
    hashes.set(line.slice(0, colon), hash);
    if (costliest === '' || cost(hash) > cost(costliest)) costliest = hash;
  }
  return { hashes, costliest: costliest === '' ? NO_HASH : costliest };
}

function cost(hash: string): number {
  const [, rounds] = /^\$2[abxy]\$(\d\d)\$/.exec(hash) ?? [];
  if (rounds !== undefined) return Number(rounds);
  return hash.startsWith('$apr1$') ? 1 : 0;
}

/** Value of the first attribute that has a non-empty value; otherwise ''. */
export function firstValue(attributes: readonly string[], read: (attribute: string) => string | undefined): string {
  for (const attribute of attributes) {
    const value = read(attribute);
    if (value !== undefined && value !== '') return value;
  }
  return '';
}
