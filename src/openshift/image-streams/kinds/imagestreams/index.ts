/**
 * Image streams and their views: tags, images and imports. Source: openshift/openshift-apiserver
 * pkg/image/apiserver/registry; columns of `oc get is`, `oc get istag`.
 */
import { semanticEqual } from '../../../../api/meta/equality.ts';
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { type KubeObject, nextGeneration } from '../../../../api/meta/object.ts';
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import { since } from '../../../../api/printing/duration.ts';
import type { KindDefinition, Verb } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import type { Image } from '../images/index.ts';
import type { ImageStream, TagHistory, TagReference } from './types.ts';

const GROUP = 'image.openshift.io';
const TAG = /^[\w][\w.-]{0,127}$/;
const SOURCES = ['DockerImage', 'ImageStreamTag', 'ImageStreamImage'];
const SHOWN_TAGS = 3;

function validateTags(tags: readonly TagReference[]): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, { name = '', from, referencePolicy }] of tags.entries()) {
    const at = `spec.tags[${index}]`;
    if (!TAG.test(name)) errors.push(fieldError.invalid(`${at}.name`, name, `must match ${TAG.source}`));
    else if (seen.has(name)) errors.push(fieldError.duplicate(`${at}.name`, name));
    seen.add(name);
    if (from !== undefined && !SOURCES.includes(from.kind ?? ''))
      errors.push(fieldError.notSupported(`${at}.from.kind`, from.kind ?? '', SOURCES));
    if (from !== undefined && !from.name) errors.push(fieldError.required(`${at}.from.name`));
    const type = referencePolicy?.type ?? 'Source';
    if (type !== 'Source' && type !== 'Local')
      errors.push(fieldError.notSupported(`${at}.referencePolicy.type`, type, ['Local', 'Source']));
  }
  return errors;
}

/**
 * Sets the generation of each changed tag to the next generation of the stream. If the latest image of a tag has an
 * older generation than the tag, the tag must be imported again.
 */
export function numberTags(stream: ImageStream, old: ImageStream | undefined): void {
  const before = new Map((old?.spec?.tags ?? []).map((tag) => [tag.name, tag]));
  const next = old === undefined ? 1 : nextGeneration(old);
  for (const tag of stream.spec?.tags ?? []) {
    const previous = before.get(tag.name);
    const isSame = previous !== undefined && semanticEqual({ ...tag, generation: 0 }, { ...previous, generation: 0 });
    const requested = tag.generation !== undefined && tag.generation !== previous?.generation;
    if (isSame && !requested) tag.generation = previous.generation ?? 1;
    else tag.generation = next;
  }
}

const { strategy, statusStrategy } = specStatusStrategies<ImageStream>({
  prepareForCreate: (stream) => numberTags(stream, undefined),
  prepareForUpdate: (stream, old) => numberTags(stream, old),
  validate: ({ spec }) => validateTags(spec?.tags ?? []),
});

function setDefaults({ spec }: ImageStream): void {
  if (spec === undefined) return;
  spec.lookupPolicy ??= {};
  spec.lookupPolicy.local ??= false;
  for (const tag of spec.tags ?? []) {
    tag.importPolicy ??= {};
    tag.referencePolicy ??= {};
    tag.referencePolicy.type ||= 'Source';
  }
}

/** Tag names for a table column. Tags that have changed most recently come first. */
function tagsText({ spec, status }: ImageStream): string {
  const latest = ({ items = [] }: TagHistory): string => items[0]?.created ?? '';
  const known = (status?.tags ?? []).toSorted((a, b) => (latest(a) < latest(b) ? 1 : -1)).map(({ tag = '' }) => tag);
  const tags = [...new Set([...known, ...(spec?.tags ?? []).map(({ name = '' }) => name)])];
  const shown = tags.slice(0, SHOWN_TAGS).join(',');
  return tags.length > SHOWN_TAGS ? `${shown} + ${tags.length - SHOWN_TAGS} more...` : shown;
}

function updatedText({ status }: ImageStream, nowMs: number): string {
  const times = (status?.tags ?? []).map(({ items = [] }) => items[0]?.created ?? '').sort();
  const last = times.at(-1) ?? '';
  return last === '' ? '' : `${since(last, nowMs)} ago`;
}

export const imageStreams: KindDefinition<ImageStream> = {
  group: GROUP,
  version: 'v1',
  kind: 'ImageStream',
  plural: 'imagestreams',
  singular: 'imagestream',
  listKind: 'ImageStreamList',
  namespaced: true,
  shortNames: ['is'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'com.github.openshift.api.image.v1.ImageStream',
  skeleton: { spec: {}, status: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/imagestreams',
  setDefaults,
  strategy,
  statusStrategy,
  extraSubresources: [
    { name: 'layers', kind: 'ImageStreamLayers', verbs: ['get'] },
    { name: 'secrets', kind: 'SecretList', group: '', version: 'v1', verbs: ['get'] },
  ],
  columns: [
    nameColumn,
    column<ImageStream>(
      'Image Repository',
      'Repository of the stream.',
      ({ spec, status }) => status?.dockerImageRepository || spec?.dockerImageRepository || '',
    ),
    column<ImageStream>('Tags', 'Tags of the stream.', tagsText),
    column<ImageStream>('Updated', 'When a tag changed last.', updatedText),
  ],
};

function view<T extends KubeObject>(
  kind: string,
  verbs: readonly Verb[],
  columns: KindDefinition<T>['columns'],
  shortNames: readonly string[] = [],
): KindDefinition<T> {
  const singular = kind.toLowerCase();
  return {
    group: GROUP,
    version: 'v1',
    kind,
    plural: `${singular}s`,
    singular,
    listKind: `${kind}List`,
    namespaced: true,
    verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    schemaName: `com.github.openshift.api.image.v1.${kind}`,
    nameRule: 'pathSegment',
    isComputed: true,
    storagePrefix: '',
    strategy: {},
    columns,
  };
}

export interface ImageStreamTag extends KubeObject {
  tag?: TagReference;
  generation?: number;
  lookupPolicy?: { local?: boolean };
  image?: Image;
}

export interface ImageTag extends KubeObject {
  spec?: TagReference;
  status?: TagHistory;
  image?: Image;
}

const TAG_VERBS: readonly Verb[] = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];

const updated = column<KubeObject>('Updated', 'When the tag got the image.', ({ metadata }, nowMs) =>
  since(metadata?.creationTimestamp, nowMs),
);

export const imageStreamTags = view<ImageStreamTag>(
  'ImageStreamTag',
  TAG_VERBS,
  [
    nameColumn,
    column<ImageStreamTag>('Image Reference', 'Pull specification.', ({ image }) => image?.dockerImageReference ?? ''),
    updated,
  ],
  ['istag'],
);

export const imageTags = view<ImageTag>(
  'ImageTag',
  TAG_VERBS,
  [
    nameColumn,
    column<ImageTag>('Spec', 'Where images come from.', ({ spec }) => spec?.from?.name ?? ''),
    column<ImageTag>('Status', 'The latest image.', ({ status }) => status?.items?.[0]?.image ?? ''),
  ],
  ['itag'],
);

export const imageStreamImages = view<ImageStreamTag>(
  'ImageStreamImage',
  ['get'],
  [
    nameColumn,
    column<ImageStreamTag>('Image Reference', 'Pull specification.', ({ image }) => image?.dockerImageReference ?? ''),
    updated,
  ],
  ['isimage'],
);

export const imageStreamImports = view('ImageStreamImport', ['create'], []);
export const imageStreamMappings = view('ImageStreamMapping', ['create'], []);
export const imageSignatures: KindDefinition = {
  ...view('ImageSignature', ['create'], []),
  namespaced: false,
};
