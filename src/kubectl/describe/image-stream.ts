/** Image streams in `describe`. Source: the output of oc 4.20. */
import { type AnyObject, fieldAt, listAt, mapAt, numberAt, textAt } from '../core/objects.ts';
import { openshiftHead, relativeTime } from './openshift.ts';
import type { Page } from './page.ts';
import type { Related } from './related-facts.ts';

type Part = Record<string, unknown>;

export function describeImageStream(object: AnyObject, { now }: Related): string {
  const repository =
    textAt(object, 'status', 'publicDockerImageRepository') || textAt(object, 'status', 'dockerImageRepository');
  const page = openshiftHead(object, now)
    .required(0, 'Image Repository', repository)
    .line(0, `Image Lookup:\tlocal=${fieldAt(object, 'spec', 'lookupPolicy', 'local') === true}`);
  const status = new Map(listAt(object, 'status', 'tags').map((tag) => [textAt(tag, 'tag'), tag]));
  const spec = new Map(listAt(object, 'spec', 'tags').map((tag) => [textAt(tag, 'name'), tag]));
  const names = [...new Set([...status.keys(), ...spec.keys()])].sort(byPriority);
  if (names.length === 0) return page.line(0, 'Tags:\t<none>').toString();
  const images = [...status.values()].flatMap((tag) => listAt(tag, 'items')).map((item) => textAt(item, 'image'));
  const unique = new Set(images.filter((image) => image !== '')).size;
  page.line(0, `Unique Images:\t${unique}`).line(0, `Tags:\t${names.length}`).line(0, '');
  const aliases = new Map(names.map((name) => [name, aliasOf(object, spec.get(name))]));
  const shown = names.filter((name) => aliases.get(name) === undefined);
  for (const [index, name] of shown.entries()) {
    if (index > 0) page.line(0, '');
    const others = names.filter((each) => aliases.get(each) === name);
    page.line(0, others.length === 0 ? name : `${name} (${others.join(', ')})`);
    sourceLines(page, object, spec.get(name));
    historyLines(page, { spec: spec.get(name), status: status.get(name) }, now);
  }
  return page.toString();
}

/** Orders `latest` first, then versions with the highest first, then other tags by name. */
function byPriority(left: string, right: string): number {
  const rank = (tag: string): number => (tag === 'latest' ? 0 : /^v?\d/.test(tag) ? 1 : 2);
  if (rank(left) !== rank(right)) return rank(left) - rank(right);
  const order = left.localeCompare(right, 'en', { numeric: true });
  return rank(left) === 1 ? -order : order;
}

/** Tag of the same stream that a tag refers to; undefined if it has another source. */
function aliasOf(stream: AnyObject, tag: Part | undefined): string | undefined {
  if (textAt(tag, 'from', 'kind') !== 'ImageStreamTag') return undefined;
  const namespace = textAt(tag, 'from', 'namespace');
  if (namespace !== '' && namespace !== stream.metadata?.namespace) return undefined;
  const [first = '', second] = textAt(tag, 'from', 'name').split(':');
  if (second === undefined) return first;
  return first === stream.metadata?.name ? second : undefined;
}

function sourceLines(page: Page, stream: AnyObject, tag: Part | undefined): void {
  page.line(1, sourceText(stream, tag));
  if (fieldAt(tag, 'importPolicy', 'insecure') === true) page.line(2, 'will use insecure HTTPS or HTTP connections');
  if (textAt(tag, 'referencePolicy', 'type') === 'Local')
    page.line(2, 'prefer registry pullthrough when referencing this tag');
  page.line(0, '');
  const annotations = mapAt(tag, 'annotations');
  const lines = [
    ['', 'description'],
    ['Tags: ', 'tags'],
    ['Supports: ', 'supports'],
    ['Example Repo: ', 'sampleRepo'],
  ].flatMap(([title = '', name = '']) => {
    const text = annotations[name] ?? '';
    return text === '' ? [] : [`${title}${title.endsWith('s: ') ? text.split(',').join(', ') : text}`];
  });
  for (const text of lines) page.line(1, text);
  if (lines.length > 0) page.line(0, '');
}

function sourceText(stream: AnyObject, tag: Part | undefined): string {
  if (tag === undefined) return 'no spec tag';
  const kind = textAt(tag, 'from', 'kind');
  if (kind === '') return 'tag without source image';
  const namespace = textAt(tag, 'from', 'namespace');
  const isForeign = namespace !== '' && namespace !== stream.metadata?.namespace;
  const name = `${isForeign ? `${namespace}/` : ''}${textAt(tag, 'from', 'name')}`;
  const origin = { DockerImage: 'registry ', ImageStreamImage: 'image ' }[kind] ?? '';
  if (tag['reference'] === true) return `reference to ${origin}${name}`;
  if (kind !== 'ImageStreamImage' && fieldAt(tag, 'importPolicy', 'scheduled') === true)
    return `updates automatically from ${origin}${name}`;
  return `tagged from ${name}`;
}

interface Tag {
  readonly spec: Part | undefined;
  readonly status: Part | undefined;
}

/** Adds a running or failed import, and the images that the tag had, the latest first. */
function historyLines(page: Page, { spec, status }: Tag, now: number): void {
  const items = listAt(status, 'items');
  const imported = listAt(status, 'conditions').find(({ type }) => type === 'ImportSuccess');
  const observed = Math.max(numberAt(items[0], 0, 'generation'), numberAt(imported, 0, 'generation'));
  if (fieldAt(spec, 'from') !== undefined && spec?.['reference'] !== true && numberAt(spec, 0, 'generation') > observed)
    page.line(1, '~ importing latest image ...');
  if (textAt(imported, 'status') === 'False')
    page
      .line(1, `! error: Import failed (${textAt(imported, 'reason')}): ${textAt(imported, 'message')}`)
      .line(3, `${relativeTime(textAt(imported, 'lastTransitionTime'), now)} ago`);
  for (const [index, item] of items.entries()) {
    const reference = textAt(item, 'dockerImageReference');
    const image = textAt(item, 'image');
    const suffix = image === '' || reference.endsWith(`@${image}`) ? '' : `\t${image}`;
    page
      .line(1, `${index === 0 ? '*' : ' '} ${reference}`)
      .line(3, `${relativeTime(textAt(item, 'created'), now)} ago${suffix}`);
  }
}
