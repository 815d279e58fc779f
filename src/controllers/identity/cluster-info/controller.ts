/** Publishes the cluster data for joining hosts. */
import type { ConfigMap } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import { encodeBase64 } from '../../../api/validation/base64.ts';
import { createUnlessPresent } from '../../framework/create-unless-present.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import {
  apiServersOf,
  INFO_MAP,
  KUBELET_CA_MAP,
  planClusterInfo,
  planKubeletCa,
  planSettings,
  SETTINGS_MAP,
} from './plan.ts';

const ENDPOINTS = { namespace: 'default', name: 'kubernetes' } as const;
const KEY = 'cluster';

interface Place {
  readonly namespace: string;
  readonly name: string;
}
const only = ({ namespace, name }: Place) => ({ namespace, fieldSelector: `metadata.name=${name}` });
const keyOf = ({ namespace, name }: Place): string => `${namespace}/${name}`;

export const clusterInfoController: ControllerSpec = {
  name: 'cluster-info-publisher',
  reads: [resources.configMaps, resources.endpoints],
  writes: [resources.configMaps],
  uses: ['clusterFacts'],
  prepare: (handle) => {
    const facts = handle.use('clusterFacts');
    // The facts are missing in tests and with an API server of another distribution. Then no host can join.
    if (facts === undefined) return () => {};
    const info = handle.informer(resources.configMaps, only(INFO_MAP));
    const settings = handle.informer(resources.configMaps, only(SETTINGS_MAP));
    const kubeletCa = handle.informer(resources.configMaps, only(KUBELET_CA_MAP));
    const endpoints = handle.informer(resources.endpoints, only(ENDPOINTS));
    const client = handle.writer(resources.configMaps);
    const write = async (present: ConfigMap | undefined, planned: ConfigMap | undefined): Promise<void> => {
      if (planned === undefined) return;
      if (present === undefined) await createUnlessPresent(() => client.create(planned));
      else await client.update(planned);
    };
    return (scope) => {
      const queue = scope.queue(async () => {
        const apiServers = apiServersOf(endpoints.get(keyOf(ENDPOINTS)), facts.publicUrl);
        const present = { info: info.get(keyOf(INFO_MAP)), settings: settings.get(keyOf(SETTINGS_MAP)) };
        await write(present.info, planClusterInfo(present.info, apiServers, facts, encodeBase64));
        const ofKubelets = kubeletCa.get(keyOf(KUBELET_CA_MAP));
        await write(ofKubelets, planKubeletCa(ofKubelets, facts));
        await write(present.settings, planSettings(present.settings, apiServers, facts));
      }, 1);
      const wake = (): void => queue.add(KEY);
      for (const informer of [info, settings, kubeletCa]) scope.onChange(informer, { updated: wake, deleted: wake });
      scope.onChange(endpoints, { added: wake, updated: wake });
      wake();
    };
  },
};
