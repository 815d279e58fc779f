/**
 * Files that show the effective settings to tools, on hosts with the profile `okd`, at the paths that upstream uses.
 * `/etc/kubernetes/kubelet.conf` shows the kubelet's settings unless a pool sets its content.
 * `/etc/crio/crio.conf.d/00-default` shows the runtime's settings. The host process never reads these files as
 * configuration.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { configz, type KubeletConfig } from '../../kubelet/index.ts';
import { KUBELET_CONF, RUNTIME_DIRECTORY } from '../../openshift/machine-config/core/pools/node-settings.ts';
import { SHOWN_CONFIG } from '../config/pool-settings.ts';
import type { Settings } from '../config/settings.ts';
import { profileOfHost } from '../openshift/cluster-profile.ts';

/**
 * Writes or removes the files according to the profile. The profile is read again, because that of a worker may have
 * changed since the start. Never throws.
 */
export async function followSettings(settings: Settings, config: KubeletConfig, log: Log): Promise<void> {
  if ((await profileOfHost(settings)) === 'okd') await showSettings(settings.root, config, log);
  else await hideSettings(settings.root, log);
}

async function hideSettings(root: string, log: Log): Promise<void> {
  for (const path of [join(root, KUBELET_CONF), join(root, RUNTIME_DIRECTORY, '00-default')]) {
    try {
      const present = await readFile(path, 'utf8').catch(() => '');
      if (present.startsWith(SHOWN_CONFIG)) await rm(path);
    } catch (error) {
      log.warn('published settings of the host not removed', { file: path, error: messageOf(error) });
    }
  }
}

/** Writes the files. A file of a pool or of another program is not overwritten. Never throws. */
export async function showSettings(root: string, config: KubeletConfig, log: Log): Promise<void> {
  await show(join(root, KUBELET_CONF), stringify(configz(config).kubeletconfig, { lineWidth: 0 }), log);
  const lines = [
    'log_level = "info"',
    `pids_limit = ${config.podPidsLimit > 0 ? config.podPidsLimit : -1}`,
    `log_size_max = ${config.containerLogMaxBytes}`,
  ];
  const runtime = `[crio]\n  [crio.runtime]\n${lines.map((line) => `    ${line}\n`).join('')}`;
  await show(join(root, RUNTIME_DIRECTORY, '00-default'), runtime, log);
}

async function show(path: string, body: string, log: Log): Promise<void> {
  const text = `${SHOWN_CONFIG}\n${body}`;
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
    log.warn('settings of the host not published', { file: path, error: messageOf(error) });
  }
}
