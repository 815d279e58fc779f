/** Keys of a Secret as files in memory. Source: pkg/volume/secret. */
import { addKeys, DEFAULT_MODE, payloadVolumes } from './payload.ts';
import type { DirectType } from './type.ts';

export const secret: DirectType = {
  way: 'direct',
  source: 'secret',
  isReadOnly: () => true,
  apiObject: () => 'a secret',
  create: (host) =>
    payloadVolumes(host, 'secret', 'memory', async (files, input, { secret: source = {} }) => {
      const { secretName = '', items, defaultMode, optional = false } = source;
      const data = await input.config.secret(input.pod, secretName, optional);
      const mode = defaultMode ?? DEFAULT_MODE;
      addKeys(files, input.budget, { data, items, mode, optional, missing: 'references non-existent secret key' });
    }),
};
