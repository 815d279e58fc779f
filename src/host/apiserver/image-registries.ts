import type { JsonObject } from '../../api/meta/object.ts';
import type { ImageRegistries } from '../../apiserver/computed-resources/image-streams/registry-port.ts';
import { inspectImage, isConfigured, platformArchitecture } from '../../runtime/images/index.ts';
import { sharedRegistries } from '../config/registries.ts';

/**
 * Inspects images with the registry configuration of this host. `masterConfig`: path of master-config.yaml; the
 * registry configuration is in the same directory.
 */
export const imageRegistriesOf = (masterConfig: string): ImageRegistries => ({
  inspect: async (name, credentials) => {
    const options = await sharedRegistries(masterConfig);
    if (options === undefined || !isConfigured(name, options)) return undefined;
    const { configuration, layers, ...found } = await inspectImage(
      name,
      options,
      platformArchitecture(process.arch),
      credentials,
    );
    return {
      ...found,
      configuration: configuration as JsonObject,
      layers: layers.map(({ digest, size, mediaType }) => ({ name: digest, size, mediaType })),
    };
  },
});
