/**
 * `/etc/kubernetes/kubelet.conf` of a host under the profile `okd` while no pool says what is in it: the kubelet's
 * configuration in force, in YAML as upstream has it, for tools that read it there. It is never read back.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { configz, type KubeletConfig } from '../../components/kubelet/index.ts';
import { KUBELET_CONF } from '../../core/reconcile/machine-config/settings.ts';
import { SHOWN_CONFIG } from '../config/pool-settings.ts';

/** A file of a pool or of another program stays. Never throws. */
export async function showKubeletConfig(root: string, config: KubeletConfig, log: Log): Promise<void> {
  const path = join(root, KUBELET_CONF);
  const text = `${SHOWN_CONFIG}\n${stringify(configz(config).kubeletconfig, { lineWidth: 0 })}`;
  try {
    const present = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (present === text || (present !== undefined && !present.startsWith(SHOWN_CONFIG))) return;
    await mkdir(dirname(path), { recursive: true });
    await writeFile(`${path}.new`, text, { mode: 0o644 });
    await rename(`${path}.new`, path);
  } catch (error) {
    log.warn('configuration of the kubelet not shown', { file: path, error: messageOf(error) });
  }
}
