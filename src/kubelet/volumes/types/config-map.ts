/** Keys of a ConfigMap as files. Source: pkg/volume/configmap. */
import { addKeys, DEFAULT_MODE, payloadVolumes } from './payload.ts';
import type { DirectType } from './type.ts';

export const configMap: DirectType = {
  way: 'direct',
  source: 'configMap',
  isReadOnly: () => true,
  apiObject: () => 'a config map',
  create: (host) =>
    payloadVolumes(host, 'configmap', 'disk', async (files, input, { configMap: source = {} }) => {
      const { name = '', items, defaultMode, optional = false } = source;
      const data = await input.config.configMap(input.pod, name, optional);
      const mode = defaultMode ?? DEFAULT_MODE;
      const missing = 'configmap references non-existent config key';
      addKeys(files, input.budget, { data, items, mode, optional, missing });
    }),
};
