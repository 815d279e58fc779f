/**
 * Reads and changes the tags of an image stream. Objects are modified in place. Source: openshift/library-go
 * pkg/image/imageutil.
 */
import { transitionTime } from '../../../api/meta/conditions.ts';
import type { ImageStream, TagEvent, TagReference } from '../kinds/imagestreams/types.ts';

export interface FoundImage {
  /** Digest of the image, `sha256:…`. */
  readonly image: string;
  readonly pullSpec: string;
}

/** Maximum number of images in the history of a tag. It is the same in upstream. */
const MAX_HISTORY = 50;

export function latestEvent(stream: ImageStream | undefined, tag: string): TagEvent | undefined {
  return (stream?.status?.tags ?? []).find((each) => each.tag === tag)?.items?.[0];
}

export function specTag(stream: ImageStream | undefined, tag: string): TagReference | undefined {
  return (stream?.spec?.tags ?? []).find((each) => each.name === tag);
}

/**
 * Records `found` as the latest image of the tag. Returns true if the tag had another image before. `now` is an RFC
 * 3339 time.
 */
export function recordImage(
  stream: ImageStream,
  tag: string,
  found: FoundImage,
  generation: number,
  now: string,
): boolean {
  const history = historyOf(stream, tag);
  history.conditions = [];
  const [latest, ...earlier] = history.items ?? [];
  const isSame = latest?.image === found.image && latest.dockerImageReference === found.pullSpec;
  if (isSame) {
    history.items = [{ ...latest, generation }, ...earlier];
    return false;
  }
  const event = { created: now, dockerImageReference: found.pullSpec, image: found.image, generation };
  history.items = [event, ...(history.items ?? [])].slice(0, MAX_HISTORY);
  return true;
}

export function recordFailure(
  stream: ImageStream,
  tag: string,
  failure: { readonly reason: string; readonly message: string },
  generation: number,
  now: string,
): void {
  const history = historyOf(stream, tag);
  history.items ??= [];
  const [before] = history.conditions ?? [];
  const lastTransitionTime = transitionTime(before, 'False', now);
  history.conditions = [{ type: 'ImportSuccess', status: 'False', lastTransitionTime, ...failure, generation }];
}

function historyOf(stream: ImageStream, tag: string) {
  stream.status ??= {};
  stream.status.tags ??= [];
  const found = stream.status.tags.find((each) => each.tag === tag);
  if (found !== undefined) return found;
  const added = { tag, items: [] as TagEvent[] };
  stream.status.tags.push(added);
  return added as NonNullable<NonNullable<ImageStream['status']>['tags']>[number];
}

/** Adds or replaces the tag in the spec. The server sets the generation of the tag when the stream is written. */
export function setSpecTag(stream: ImageStream, tag: TagReference): void {
  stream.spec ??= {};
  const others = (stream.spec.tags ?? []).filter((each) => each.name !== tag.name);
  stream.spec.tags = [...others, tag].toSorted((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1));
}

/** Removes the tag from spec and status. Returns false if the tag does not exist. */
export function removeTag(stream: ImageStream, tag: string): boolean {
  const before = [stream.spec?.tags ?? [], stream.status?.tags ?? []] as const;
  const spec = before[0].filter((each) => each.name !== tag);
  const status = before[1].filter((each) => each.tag !== tag);
  if (stream.spec !== undefined) stream.spec.tags = spec;
  if (stream.status !== undefined) stream.status.tags = status;
  return spec.length < before[0].length || status.length < before[1].length;
}

/** Names of all tags in spec and status, sorted. */
export function tagNames(stream: ImageStream): string[] {
  const names = [
    ...(stream.spec?.tags ?? []).map(({ name = '' }) => name),
    ...(stream.status?.tags ?? []).map(({ tag = '' }) => tag),
  ];
  return [...new Set(names)].filter((name) => name !== '').sort();
}

/** Tags that are imported again periodically. */
export const scheduledTags = (stream: ImageStream): TagReference[] =>
  (stream.spec?.tags ?? []).filter(
    ({ from, reference, importPolicy }) =>
      from?.kind === 'DockerImage' && reference !== true && importPolicy?.scheduled === true,
  );

/** Tags to import: tags that have changed since their last import, and tags whose last import has failed (`again`). */
export function tagsToImport(stream: ImageStream): { readonly tag: TagReference; readonly again: boolean }[] {
  return (stream.spec?.tags ?? []).flatMap((tag): { readonly tag: TagReference; readonly again: boolean }[] => {
    if (tag.from === undefined || tag.reference === true) return [];
    const history = (stream.status?.tags ?? []).find((each) => each.tag === tag.name);
    const failure = history?.conditions?.find((each) => each.status === 'False');
    const observed = Math.max(history?.items?.[0]?.generation ?? -1, failure?.generation ?? -1);
    if (observed < (tag.generation ?? 0)) return [{ tag, again: false }];
    return failure === undefined ? [] : [{ tag, again: true }];
  });
}
