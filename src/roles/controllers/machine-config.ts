/** Merging and hashing for the machine config controllers. */
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { PRODUCT_VERSION } from '../../base/version.ts';
import type { MachineConfigFacts } from '../../components/controllers/machine-config-port.ts';
import { renderMachineConfigs } from '../../core/ignition/index.ts';

export function machineConfigFacts(): MachineConfigFacts {
  return {
    version: PRODUCT_VERSION,
    merge: (fragments) =>
      renderMachineConfigs(
        fragments.map(({ spec: { kernelArguments, extensions, ...spec }, ...fragment }) => ({
          ...fragment,
          spec: { ...spec, kernelArguments: kernelArguments ?? [], extensions: extensions ?? [] },
        })),
        { inflate: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }) },
      ),
    md5: (text) => createHash('md5').update(text).digest('hex'),
    base64: (text) => Buffer.from(text, 'utf8').toString('base64'),
  };
}
