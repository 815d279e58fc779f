import { readdir, readFile, writeFile } from 'node:fs/promises';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';

/** Written only when it differs: /proc/sys may be read-only where the host's owner has set things up already. */
export async function setKernel(name: string, value: string, log: Log): Promise<void> {
  const path = `/proc/sys/${name}`;
  try {
    if ((await readFile(path, 'utf8')).trim() !== value) await writeFile(path, value);
  } catch (error) {
    log.warn('kernel setting could not be made', {
      setting: name.replaceAll('/', '.'),
      value,
      error: messageOf(error),
    });
  }
}

const isPodLink = (name: string): boolean => /^ve[0-9a-f]{11}$/.test(name);

/**
 * Turns on IPv6 forwarding. A link that takes its address from router advertisements has to accept them in spite of it,
 * or the host loses its default route. Source: ip-sysctl, accept_ra.
 */
export async function forwardIpv6(log: Log): Promise<void> {
  const at = 'net/ipv6/conf';
  // `all` and `default` stay: links of pods, which are added later, must not accept advertisements.
  for (const link of await readdir(`/proc/sys/${at}`).catch((): string[] => [])) {
    if (link === 'all' || link === 'default' || isPodLink(link)) continue;
    const accepts = (await readFile(`/proc/sys/${at}/${link}/accept_ra`, 'utf8').catch(() => '')).trim();
    if (accepts === '1') await setKernel(`${at}/${link}/accept_ra`, '2', log);
  }
  await setKernel(`${at}/all/forwarding`, '1', log);
}
