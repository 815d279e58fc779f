/** Writes image streams for requests that concern their tags. */

import type { KubeObject } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';
import { bumpGeneration } from '../../../api/registry/strategies.ts';
import { numberTags } from '../../../openshift/image-streams/kinds/imagestreams/index.ts';
import type { ImageStream } from '../../../openshift/image-streams/kinds/imagestreams/types.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import type { WriteContext } from '../../rest/context.ts';
import { createObject } from '../../rest/writes/create.ts';
import { updateObject } from '../../rest/writes/update.ts';

/** Strategy that writes spec and status together, which the endpoints of image streams do not allow. */
const whole: WriteStrategy<KubeObject> = {
  prepareForUpdate(object, old) {
    numberTags(object as ImageStream, old as ImageStream);
    bumpGeneration(object, old);
  },
};

export function streamRequest(context: WriteContext, request: WriteRequest, name: string): WriteRequest {
  return { ...request, kind: context.kinds.stored('imagestreams', 'image.openshift.io'), name, subresource: '' };
}

/**
 * Applies `change` to an image stream. `change` runs again after a conflict. With `creates`, a missing stream is
 * created.
 */
export async function changeStream(
  context: WriteContext,
  request: WriteRequest,
  name: string,
  change: (stream: ImageStream) => void,
  { creates = false }: { readonly creates?: boolean } = {},
): Promise<ImageStream> {
  const target = streamRequest(context, request, name);
  const update = async (): Promise<ImageStream> => {
    const { object } = await updateObject(context, target, {
      strategy: whole,
      next: (current) => {
        change(current as ImageStream);
        return current;
      },
    });
    return object.parse<ImageStream>();
  };
  try {
    return await update();
  } catch (error) {
    if (!creates || !isApiError(error, 'NotFound')) throw error;
  }
  try {
    const empty = { metadata: { name, namespace: request.namespace }, spec: {} } as KubeObject;
    await createObject(context, { ...target, name: '' }, empty);
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
  return update();
}
