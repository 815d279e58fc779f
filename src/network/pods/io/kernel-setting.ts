import { readdir, readFile, writeFile } from 'node:fs/promises';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';

/** Sets a kernel parameter if its value differs. An equal value is not written, because /proc/sys may be read-only. */
export async function setKernel(name: string, value: string, log: Log): Promise<void> {
  const path = `/proc/sys/${name}`;
  try {
    if ((await readFile(path, 'utf8')).trim() !== value) await writeFile(path, value);
  } catch (error) {
    log.warn('kernel setting not changed', {
      setting: name.replaceAll('/', '.'),
      value,
      error: messageOf(error),
    });
  }
}

const isPodLink = (name: string): boolean => /^ve[0-9a-f]{11}$/.test(name);

/**
 * Enables IPv6 forwarding. A link that gets its address from router advertisements must be set to accept them despite
 * forwarding, or the host loses its default route. Source: ip-sysctl, accept_ra.
 */
export async function forwardIpv6(log: Log): Promise<void> {
  const at = 'net/ipv6/conf';
  // `all` and `default` are not changed, because pod links that are added later must not accept advertisements.
  for (const link of await readdir(`/proc/sys/${at}`).catch((): string[] => [])) {
    if (link === 'all' || link === 'default' || isPodLink(link)) continue;
    const accepts = (await readFile(`/proc/sys/${at}/${link}/accept_ra`, 'utf8').catch(() => '')).trim();
    if (accepts === '1') await setKernel(`${at}/${link}/accept_ra`, '2', log);
  }
  await setKernel(`${at}/all/forwarding`, '1', log);
}
