/**
 * Resolves images by name: first in the image stores of the hosts, then in the registries of the host configuration
 * with the pull secrets of the image stream's namespace.
 */

import { pullCredentials } from '../../../api/kinds/identity/secrets/pull-credentials.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import { parsePullSpec } from '../../../openshift/image-streams/core/index.ts';
import type { Image } from '../../../openshift/image-streams/kinds/images/index.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import type { ServerContext, WriteContext } from '../../rest/context.ts';
import { createObject } from '../../rest/writes/create.ts';
import { pullSecretsOf } from './pull-secrets.ts';
import type { RegistryImage } from './registry-port.ts';
import { isFound, type Resolution, resolveName } from './resolve.ts';

type RegistryImportsContext = WriteContext & Pick<ServerContext, 'imageRegistries'>;

const MAX_PARALLEL = 8;
let active = 0;

/** Resolves `name` and stores the metadata from the registry as an Image. */
export async function importSource(
  context: RegistryImportsContext,
  request: WriteRequest,
  name: string,
): Promise<Resolution> {
  const local = resolveName(context.cache, name);
  const wanted = parsePullSpec(name);
  if (isFound(local) || context.imageRegistries === undefined || wanted === undefined) return local;
  if (active >= MAX_PARALLEL) return { reason: 'TooManyRequests', message: 'other imports are in progress; try again' };
  active += 1;
  try {
    const credentials = pullCredentials(pullSecretsOf(context.cache, request.namespace), wanted.repository);
    const found = await context.imageRegistries.inspect(name.replace(/^docker:\/\//, ''), credentials);
    if (found === undefined) return local;
    await storeImage(context, request, found);
    // The response contains the stored Image, so the cache must have it.
    await context.cache.freshen();
    return { image: found.digest, pullSpec: found.pullSpec };
  } catch (error) {
    return {
      reason: 'NotFound',
      message: `dockerimage.image.openshift.io ${JSON.stringify(name)}: ${messageOf(error)}`,
    };
  } finally {
    active -= 1;
  }
}

async function storeImage(context: RegistryImportsContext, request: WriteRequest, found: RegistryImage): Promise<void> {
  const kind = context.kinds.stored('images', 'image.openshift.io');
  if (kind.cache?.get('', found.digest) !== undefined) return;
  const image: Image = {
    metadata: { name: found.digest },
    dockerImageReference: found.pullSpec,
    dockerImageMetadataVersion: '1.0',
    dockerImageMetadata: found.configuration,
    dockerImageLayers: [...found.layers],
  };
  try {
    const own = { ...request, kind, namespace: '', name: '', subresource: '', own: true };
    await createObject(context, own, image);
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
}
