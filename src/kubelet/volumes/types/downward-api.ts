/** Fields of the pod as files. Source: pkg/volume/downwardapi. */
import { addDownward, DEFAULT_MODE, payloadVolumes } from './payload.ts';
import type { DirectType } from './type.ts';

export const downwardApi: DirectType = {
  way: 'direct',
  source: 'downwardAPI',
  isReadOnly: () => true,
  create: (host) =>
    payloadVolumes(host, 'downward-api', 'memory', async (files, input, { downwardAPI: source = {} }) =>
      addDownward(files, input, source.items ?? [], source.defaultMode ?? DEFAULT_MODE),
    ),
};
