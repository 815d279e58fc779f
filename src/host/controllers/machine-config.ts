/** Dependencies of the machine config controllers: merging and hashing. */
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import type { MachineConfigFacts } from '../../openshift/machine-config/controllers/machine-config-port.ts';
import { type RenderOptions, renderMachineConfigs } from '../../openshift/machine-config/core/ignition/index.ts';
import { groupArguments } from '../config/node-group.ts';

/**
 * Dependencies of the machine config controllers. `storeLeader`: returns the name of the node whose store member is the
 * leader.
 */
export function machineConfigFacts(storeLeader: () => string | undefined = () => undefined): MachineConfigFacts {
  const options: RenderOptions = {
    inflate: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }),
    parsed: new WeakMap(),
  };
  return {
    storeLeader,
    version: PRODUCT_VERSION,
    merge: (fragments) =>
      renderMachineConfigs(
        fragments.map(({ spec: { kernelArguments, extensions, ...spec }, ...fragment }) => ({
          ...fragment,
          spec: { ...spec, kernelArguments: kernelArguments ?? [], extensions: extensions ?? [] },
        })),
        options,
      ),
    nodeArguments: groupArguments,
    md5: (text) => createHash('md5').update(text).digest('hex'),
    base64: (text) => Buffer.from(text, 'utf8').toString('base64'),
  };
}
