/** Virtual kinds of OpenShift for templates and images, processed on create. */

import { invalid } from '../../api/meta/field-error.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { templateSteps } from '../../openshift/templates/core/index.ts';
import type { Template } from '../../openshift/templates/kinds/templates/index.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import type { WriteRequest } from '../pipeline/write-request.ts';
import type { RestContext } from '../rest/context.ts';
import { runSteps } from '../server/event-loop.ts';
import { addSignature, importImages, mapImage } from './image-streams/imports.ts';
import { secretUniform } from './uniform-names.ts';

type Handler = (context: RestContext, object: KubeObject, request: WriteRequest) => KubeObject | Promise<KubeObject>;

async function processedTemplate(
  { random }: RestContext,
  object: KubeObject,
  request: WriteRequest,
): Promise<KubeObject> {
  const template = object as Template;
  const result = await runSteps(templateSteps(template, secretUniform(random)));
  if ('errors' in result) throw invalid(request.kind.definition, template.metadata?.name ?? '', [...result.errors]);
  const { message, objects, parameters, labels } = result.processed;
  return {
    ...template,
    ...(message === undefined ? {} : { message }),
    objects,
    parameters,
    ...(labels === undefined ? {} : { labels }),
  } as KubeObject;
}

const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['template.openshift.io/processedtemplates', processedTemplate],
  ['image.openshift.io/imagestreamimports', importImages],
  ['image.openshift.io/imagestreammappings', mapImage],
  ['image.openshift.io/imagesignatures', addSignature],
]);

export const openshiftHandler = ({ group, plural }: ServedKind): Handler | undefined =>
  HANDLERS.get(`${group}/${plural}`);
