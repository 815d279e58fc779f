/**
 * Imports into image streams. Source: openshift/openshift-apiserver pkg/image/apiserver/registry/{imagestreamimport,
 * imagestreammapping}.
 */

import { semanticEqual } from '../../../api/meta/equality.ts';
import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import {
  parsePullSpec,
  recordFailure,
  recordImage,
  setSpecTag,
  specTag,
} from '../../../openshift/image-streams/core/index.ts';
import type { Image } from '../../../openshift/image-streams/kinds/images/index.ts';
import type { ImageStream, TagReference } from '../../../openshift/image-streams/kinds/imagestreams/types.ts';
import type { ObjectRef } from '../../../openshift/templates/kinds/templateinstances/index.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import type { ServerContext, WriteContext } from '../../rest/context.ts';
import { updateObject } from '../../rest/writes/update.ts';
import { importSource } from './registry-imports.ts';
import { imageOf, isFound, type Resolution } from './resolve.ts';
import { changeStream } from './write.ts';

type ImportsContext = WriteContext & Pick<ServerContext, 'authorization' | 'imageRegistries'>;

interface ImageImportSpec {
  readonly from?: ObjectRef;
  readonly to?: { readonly name?: string };
  readonly importPolicy?: TagReference['importPolicy'];
  readonly referencePolicy?: TagReference['referencePolicy'];
}

interface ImageStreamImport extends KubeObject {
  spec?: {
    import?: boolean;
    images?: ImageImportSpec[];
    repository?: { readonly from?: ObjectRef; readonly importPolicy?: TagReference['importPolicy'] };
  };
}

const MAX_IMAGES = 100;

interface Wanted {
  readonly spec: ImageImportSpec;
  readonly tag: string;
  readonly resolution: Resolution;
}

export async function importImages(
  context: ImportsContext,
  object: KubeObject,
  request: WriteRequest,
): Promise<KubeObject> {
  const streamImport = object as ImageStreamImport;
  const { name = '' } = streamImport.metadata ?? {};
  validate(request, streamImport);
  await context.cache.freshen();
  const isImport = streamImport.spec?.import === true;
  if (isImport) {
    const action = { group: 'image.openshift.io', resource: 'imagestreams', namespace: request.namespace, name };
    const verbs = ['create', 'update'].map((verb) => ({ ...action, verb, subresource: '' }));
    await context.authorization.requireEach(request.user, verbs);
  }
  const wanted = await Promise.all(
    (streamImport.spec?.images ?? []).map(async (spec): Promise<Wanted> => {
      const source = spec.from?.name ?? '';
      const tag = spec.to?.name || (parsePullSpec(source)?.tag ?? 'latest');
      return { spec, tag, resolution: await importSource(context, request, source) };
    }),
  );
  const stream = isImport
    ? await changeStream(context, request, name, (each) => put(context, each, wanted), { creates: true })
    : undefined;
  const repository = streamImport.spec?.repository;
  return {
    ...streamImport,
    metadata: { ...streamImport.metadata, creationTimestamp: timestamp(context.clock.nowMs()) },
    status: {
      ...(stream === undefined ? {} : { import: stream }),
      ...(repository === undefined ? {} : { repository: { status: noRepositories(repository.from?.name ?? '') } }),
      ...(wanted.length === 0 ? {} : { images: wanted.map((each) => answerTo(context, each)) }),
    },
  } as KubeObject;
}

function validate({ kind }: WriteRequest, { metadata, spec }: ImageStreamImport): void {
  const failures = [
    ...(metadata?.name ? [] : [fieldError.required('metadata.name')]),
    ...((spec?.images ?? []).length === 0 && spec?.repository === undefined
      ? [fieldError.invalid('spec.images', '', 'you must specify at least one repository or image')]
      : []),
    ...((spec?.images ?? []).length > MAX_IMAGES
      ? [fieldError.tooMany('spec.images', (spec?.images ?? []).length, MAX_IMAGES)]
      : []),
  ];
  for (const [index, { from }] of (spec?.images ?? []).entries()) {
    const at = `spec.images[${index}].from`;
    if (from?.kind !== 'DockerImage')
      failures.push(fieldError.invalid(`${at}.kind`, from?.kind ?? '', 'only DockerImage is supported'));
    if (!from?.name) failures.push(fieldError.required(`${at}.name`));
  }
  if (failures.length > 0) throw invalid(kind.definition, metadata?.name ?? '', failures);
}

function put(context: ImportsContext, stream: ImageStream, wanted: readonly Wanted[]): void {
  const now = timestamp(context.clock.nowMs());
  for (const { spec, tag, resolution } of wanted) {
    const before = specTag(stream, tag);
    const from = { kind: 'DockerImage', name: spec.from?.name ?? '' };
    const wantedTag: TagReference = {
      name: tag,
      from,
      importPolicy: spec.importPolicy ?? before?.importPolicy ?? {},
      referencePolicy: { type: spec.referencePolicy?.type || before?.referencePolicy?.type || 'Source' },
    };
    const { generation: numbered, annotations, ...known } = before ?? {};
    const isSame = semanticEqual(known, wantedTag);
    if (!isSame) setSpecTag(stream, annotations === undefined ? wantedTag : { ...wantedTag, annotations });
    const generation = isSame ? (numbered ?? 1) : (stream.metadata?.generation ?? 1) + 1;
    if (isFound(resolution)) recordImage(stream, tag, resolution, generation, now);
    else recordFailure(stream, tag, resolution, generation, now);
  }
}

function answerTo(context: ImportsContext, { tag, resolution }: Wanted): object {
  if (isFound(resolution))
    return { status: { metadata: {}, status: 'Success' }, image: imageOf(context.cache, resolution), tag };
  const { reason, message } = resolution;
  return { status: { metadata: {}, status: 'Failure', message, reason, code: reason === 'NotFound' ? 404 : 422 }, tag };
}

const noRepositories = (name: string): object => ({
  metadata: {},
  status: 'Failure',
  reason: 'NotFound',
  code: 404,
  message: `${name}: repositories are not listed without a registry; import single tags`,
});

/** Handles an ImageStreamMapping: its image becomes the latest image of the tag. */
export async function mapImage(
  context: ImportsContext,
  object: KubeObject,
  request: WriteRequest,
): Promise<KubeObject> {
  const { metadata, image, tag = 'latest' } = object as KubeObject & { image?: Image; tag?: string };
  const digest = image?.metadata?.name ?? '';
  const pullSpec = image?.dockerImageReference ?? '';
  const failures = [
    ...(metadata?.name ? [] : [fieldError.required('metadata.name')]),
    ...(/^sha256:[0-9a-f]{64}$/.test(digest)
      ? []
      : [fieldError.invalid('image.metadata.name', digest, 'must be a sha256 digest')]),
    ...(parsePullSpec(pullSpec) === undefined
      ? [fieldError.invalid('image.dockerImageReference', pullSpec, 'not a valid image reference')]
      : []),
  ];
  if (failures.length > 0) throw invalid(request.kind.definition, metadata?.name ?? '', failures);
  const now = timestamp(context.clock.nowMs());
  await changeStream(context, request, metadata?.name ?? '', (stream) => {
    const generation = specTag(stream, tag)?.generation ?? stream.metadata?.generation ?? 1;
    recordImage(stream, tag, { image: digest, pullSpec }, generation, now);
  });
  return object;
}

const MAX_SIGNATURES = 20;

/** Adds a signature to the image in the name `IMAGE@NAME`. The signature is not verified. */
export async function addSignature(
  context: ImportsContext,
  object: KubeObject,
  request: WriteRequest,
): Promise<KubeObject> {
  const { name = '' } = object.metadata ?? {};
  const [image = '', own = ''] = name.split('@');
  const { definition } = request.kind;
  if (image === '' || own === '')
    throw invalid(definition, name, [
      fieldError.invalid('metadata.name', name, 'must be of format <imageName>@<signatureName>'),
    ]);
  const kind = context.kinds.stored('images', 'image.openshift.io');
  await updateObject(
    context,
    { ...request, kind, name: image, subresource: '' },
    {
      strategy: kind.definition.strategy,
      next: (current) => {
        const { signatures = [] } = current as Image;
        if (signatures.some((each) => each.metadata?.name === name)) throw errors.alreadyExists(definition, name);
        if (signatures.length >= MAX_SIGNATURES)
          throw invalid(definition, name, [fieldError.tooMany('signatures', signatures.length + 1, MAX_SIGNATURES)]);
        const { apiVersion: _a, kind: _k, ...signature } = object;
        return { ...current, signatures: [...signatures, signature] } as KubeObject;
      },
    },
  );
  return object;
}
