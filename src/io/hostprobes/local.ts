import { existsSync, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Probe } from '../../components/openshift/clusteroperators/port.ts';

/**
 * Tables of this process's network namespace: links that are up with an address have a line in one of them. No disk is
 * behind them.
 */
const TABLES = ['/proc/self/net/route', '/proc/self/net/if_inet6'];

const UP = 1;

/** The link is up and has a route or an address, with or without carrier. */
export function probeLink(name: string): Probe {
  return async () => {
    const flags = `/sys/class/net/${name}/flags`;
    if (!existsSync(flags)) throw new Error(`link ${name} is missing`);
    if ((Number(readFileSync(flags, 'utf8')) & UP) === 0) throw new Error(`link ${name} is down`);
    const texts = TABLES.map((path) => (existsSync(path) ? readFileSync(path, 'utf8') : ''));
    const words = texts.flatMap((text) => text.split('\n').flatMap((line) => line.trim().split(/\s+/)));
    if (!words.includes(name)) throw new Error(`link ${name} has no route`);
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
