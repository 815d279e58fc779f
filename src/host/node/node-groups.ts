/**
 * Node groups of this host. In OKD, the `sync` DaemonSet applies them. Here the host process applies them, because pods
 * that are created through the API cannot write to the host's root file system (docs/decisions/0017).
 */
import { writeFile } from 'node:fs/promises';
import type { NodeName } from '../../base/brand.ts';
import { startApplyLoop } from '../../base/concurrency/apply-loop.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { ApiClient, InformerFactory } from '../../client/index.ts';
import { followNodeGroup, keepNodeGroups } from '../../openshift/machine-config/node-groups/index.ts';
import { masterFiles } from '../../pki/index.ts';
import { nodeConfigOf } from '../config/generate.ts';
import { writeGenerated } from '../config/generated-file.ts';
import { readNodeConfig } from '../config/node-config.ts';
import { groupedNodeConfig, groupLabels, groupNameOf, ignoredFields, ownGroupText } from '../config/node-group.ts';
import { withPoolSettings } from '../config/pool-settings.ts';
import type { Settings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';

export interface NodeGroupOptions {
  readonly settings: Settings;
  readonly cgroupDriver: string;
  readonly nodeName: NodeName;
  readonly informers: InformerFactory;
  readonly client: ApiClient;
  readonly restartKubelet: () => Promise<void>;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

/**
 * Follows the node group of this host. On a master, also maintains the ConfigMaps of all groups. Returns a function
 * that ends both.
 */
export async function followHostGroup(options: NodeGroupOptions): Promise<() => void> {
  const { settings, informers, client, nodeName, clock, random, log } = options;
  const closers: (() => void)[] = [];
  if (settings.roles.has('master')) {
    const { adminKubeconfig } = masterFiles(settings.root);
    const openAdmin = () => openClient(adminKubeconfig, 'hyperedge', { clock, random, log });
    closers.push(keepNodeGroups({ informers, openAdmin, labelsOf: groupLabels, clock, log }));
  }
  const group = await groupNameOf(settings.paths.nodeSysconfig);
  if (group !== undefined) {
    const { onConfig, stop } = applyGroup(options, group);
    closers.push(followNodeGroup({ informers, client, nodeName, group, onConfig, clock, log }), stop);
  }
  return () => {
    for (const close of closers) close();
  };
}

/**
 * Applies the texts of a group: writes node-config.yaml and restarts the kubelet. A failure is retried. For an invalid
 * NodeConfig, the previous configuration remains.
 */
function applyGroup(
  options: NodeGroupOptions,
  group: string,
): { readonly onConfig: (text: string, byPools: boolean) => void; readonly stop: () => void } {
  const { settings, clock, log } = options;
  let wanted = '';
  let mustRestart = false;
  const loop = startApplyLoop({
    apply: async () => {
      await writeFile(settings.paths.nodeGroup, wanted, { mode: 0o600 });
      if (await writeConfig(options)) mustRestart = true;
      if (!mustRestart) return;
      log.info('node group applied; restarting the kubelet', { group });
      await options.restartKubelet();
      mustRestart = false;
    },
    failure: 'node group not applied',
    clock,
    log,
  });
  return {
    onConfig: (text, byPools) => {
      try {
        const ignored = ignoredFields(text, `ConfigMap openshift-node/${group}`);
        if (ignored.length > 0)
          log.warn('fields of the node group have no effect on this host', { group, fields: ignored });
        wanted = ownGroupText(text, byPools);
        loop.touch();
      } catch (error) {
        log.warn('node group not applied', { group, error: messageOf(error) });
      }
    },
    stop: () => void loop.stop(),
  };
}

/** Writes node-config.yaml. Resolves with true if this changes the kubelet's effective configuration. */
async function writeConfig({ settings, cgroupDriver, log }: NodeGroupOptions): Promise<boolean> {
  const config = await groupedNodeConfig(settings, cgroupDriver, log);
  const before = await inForce(settings, cgroupDriver);
  const outcome = await writeGenerated(settings.paths.nodeConfig, config);
  if (outcome === 'kept') {
    log.warn('node-config.yaml was edited and is kept; the node group is not applied', {
      file: settings.paths.nodeConfig,
    });
  }
  // The configuration may have the same effect as before, for example because the pool sets the same arguments.
  return outcome === 'written' && before !== (await inForce(settings, cgroupDriver));
}

/** The kubelet's effective configuration as text, for comparison; undefined if the file is invalid. */
async function inForce(settings: Settings, cgroupDriver: string): Promise<string | undefined> {
  try {
    const { config } = await readNodeConfig(settings.paths.nodeConfig, nodeConfigOf(settings, cgroupDriver));
    const { kubeletArguments = {}, ...rest } = await withPoolSettings(config, settings.root);
    return JSON.stringify([
      rest,
      Object.entries(kubeletArguments).toSorted(([left], [right]) => (left < right ? -1 : 1)),
    ]);
  } catch {
    return undefined;
  }
}
