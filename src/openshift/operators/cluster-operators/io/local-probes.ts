import { existsSync, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Probe } from '../port.ts';

/**
 * Files with the routes and IPv6 addresses of this process's network namespace. Every link that is up and has an
 * address is listed in one of them. Reading these files needs no disk access.
 */
const TABLES = ['/proc/self/net/route', '/proc/self/net/if_inet6'];

/** File that lists all links, including links that are down. */
const LINKS = '/proc/self/net/dev';
const UP = 1;

const linksOf = (text: string): string[] =>
  text.split('\n').flatMap((line) => /^\s*([^:\s]+):/.exec(line)?.slice(1, 2) ?? []);

/** Whether the link is down. Returns false if /sys belongs to another network namespace and does not show the link. */
function isDown(name: string): boolean {
  const flags = `/sys/class/net/${name}/flags`;
  return existsSync(flags) && (Number(readFileSync(flags, 'utf8')) & UP) === 0;
}

/** Succeeds if the link is up and has a route or an address. The link needs no carrier. */
export function probeLink(name: string): Probe {
  return async () => {
    if (!linksOf(readFileSync(LINKS, 'utf8')).includes(name)) throw new Error(`link ${name} is missing`);
    const texts = TABLES.map((path) => (existsSync(path) ? readFileSync(path, 'utf8') : ''));
    const words = texts.flatMap((text) => text.split('\n').flatMap((line) => line.trim().split(/\s+/)));
    if (!words.includes(name)) throw new Error(`link ${name} ${isDown(name) ? 'is down' : 'has no route'}`);
  };
}

export function probeDirectories(paths: () => Promise<readonly string[]>): Probe {
  return async () => {
    const wanted = await paths();
    const found = await Promise.all(
      wanted.map((path) =>
        stat(path).then(
          (each) => each.isDirectory(),
          () => false,
        ),
      ),
    );
    const missing = wanted.find((_, index) => !found[index]);
    if (missing !== undefined) throw new Error(`${missing} is missing`);
  };
}
