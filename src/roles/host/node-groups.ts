/**
 * Node groups of this host: the work of OKD's `sync` DaemonSet, done by the host process itself. A pod of the API that
 * writes files of the host would need the host's root, which no pod of the API may have (docs/decisions/0017).
 */
import { writeFile } from 'node:fs/promises';
import type { Clock, RandomSource } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, InformerFactory } from '../../client/index.ts';
import { followNodeGroup, keepNodeGroups } from '../../components/nodegroups/index.ts';
import { masterFiles } from '../../io/pki/index.ts';
import { openClient } from '../api-access.ts';
import { writeGenerated } from '../config/generated-file.ts';
import { parseNodeConfig } from '../config/node-config.ts';
import { groupedNodeConfig, groupLabels, groupNameOf } from '../config/node-group.ts';
import type { Settings } from '../config/settings.ts';

export interface NodeGroupOptions {
  readonly settings: Settings;
  readonly cgroupDriver: string;
  readonly nodeName: string;
  readonly informers: InformerFactory;
  readonly client: ApiClient;
  readonly restartKubelet: () => Promise<void>;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

/** Returns the function that stops it. */
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
    let applying: Promise<void> = Promise.resolve();
    const onConfig = (text: string): void => {
      applying = applying
        .then(() => apply(options, group, text))
        .catch((error: unknown) => log.warn('node group not applied', { group, error: messageOf(error) }));
    };
    closers.push(followNodeGroup({ informers, client, nodeName, group, onConfig, log }));
  }
  return () => {
    for (const close of closers) close();
  };
}

/** Throws for a text that is no NodeConfig: the last one stays in force. */
async function apply(options: NodeGroupOptions, group: string, text: string): Promise<void> {
  const { settings, cgroupDriver, log } = options;
  parseNodeConfig(text, `ConfigMap openshift-node/${group}`);
  await writeFile(settings.paths.nodeGroup, text, { mode: 0o600 });
  const { config, ignored } = await groupedNodeConfig(settings, cgroupDriver, log);
  if (ignored.length > 0) log.warn('fields of the node group have no effect here', { group, fields: ignored });
  const outcome = await writeGenerated(settings.paths.nodeConfig, config);
  if (outcome === 'kept') {
    log.warn('node-config.yaml was edited and is kept; the node group is not applied', {
      file: settings.paths.nodeConfig,
    });
    return;
  }
  if (outcome === 'unchanged') return;
  log.info('node group applied; restarting the kubelet', { group });
  await options.restartKubelet();
}
