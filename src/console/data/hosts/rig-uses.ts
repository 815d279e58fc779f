/** Uses of a rig as bars over time, and the recordings of its consoles. */
import { humanDuration } from '../../../api/printing/duration.ts';
import { type Decoded, decode, flag, list, number, object, optional, text } from '../../../base/decode.ts';
import { objectPath, query } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import { type AnyObject, listAt, RIGS, textAt } from '../api/resources.ts';
import { sanitizeText } from '../plain-text.ts';

export const USE_SPANS = { '24h': 24 * 3_600_000, '7d': 7 * 24 * 3_600_000 } as const;
export type UseSpan = keyof typeof USE_SPANS;

export interface UseView {
  readonly key: string;
  /** Namespace and name of the claim. */
  readonly claim: string;
  readonly requester: string;
  readonly start: string;
  /** End of the use; '' while the claim holds the rig. */
  readonly end: string;
  readonly duration: string;
  /** Node that has the recording; '' if the use was not recorded. */
  readonly node: string;
  readonly state: string;
}

export interface UseBar {
  readonly key: string;
  /** Start and width of the bar, as fractions of the span from 0 to 1. */
  readonly from: number;
  readonly width: number;
  /** Index of the requester's colour, counted from 1. */
  readonly colour: number;
  readonly label: string;
}

export interface Timeline {
  readonly bars: readonly UseBar[];
  readonly requesters: readonly { readonly name: string; readonly colour: number }[];
}

const COLOURS = 6;
/** Minimum width of a bar. A narrower bar would be invisible. */
const MIN_WIDTH = 0.004;

/** Uses in the status of a rig, newest first. Entries without a valid start are omitted. */
export function usesOf(rig: AnyObject, nowMs: number): readonly UseView[] {
  return listAt(rig, 'status', 'history').flatMap((use, index) => {
    const [start, end] = [textAt(use, 'grantedAt'), textAt(use, 'endedAt')];
    const startMs = Date.parse(start);
    if (Number.isNaN(startMs)) return [];
    return {
      key: `${textAt(use, 'uid')} ${index}`,
      claim: sanitizeText(`${textAt(use, 'namespace')}/${textAt(use, 'name')}`),
      requester: sanitizeText(textAt(use, 'requester')) || 'unknown',
      start,
      end,
      duration: humanDuration(Math.max(0, endMs(end, nowMs) - startMs)),
      node: sanitizeText(textAt(use, 'node')),
      state: end === '' ? 'in use' : sanitizeText(textAt(use, 'reason')) || 'ended',
    };
  });
}

const endMs = (end: string, nowMs: number): number => {
  const parsed = Date.parse(end);
  return Number.isNaN(parsed) ? nowMs : parsed;
};

/** Bars of the uses during the last `spanMs`. */
export function timelineOf(uses: readonly UseView[], spanMs: number, nowMs: number): Timeline {
  const colours = new Map<string, number>();
  const bars: UseBar[] = [];
  for (const { key, claim, requester, start, end, duration, state } of uses.toReversed()) {
    const from = Math.max(0, (Date.parse(start) - nowMs) / spanMs + 1);
    const to = Math.min(1, (endMs(end, nowMs) - nowMs) / spanMs + 1);
    if (to < 0 || from > 1) continue;
    const colour = colours.get(requester) ?? (colours.size % COLOURS) + 1;
    colours.set(requester, colour);
    const width = Math.max(MIN_WIDTH, to - from);
    const label = `${claim} of ${requester} from ${start} for ${duration}: ${state}`;
    bars.push({ key, from: Math.min(from, 1 - width), width, colour, label });
  }
  return { bars, requesters: [...colours].map(([name, colour]) => ({ name, colour })) };
}

const RECORDINGS = object({
  // API servers of earlier releases send no `node` and list only recordings of the current node.
  items: list(object({ node: optional(text), name: text, start: text, bytes: number, isOpen: flag })),
  failures: optional(list(object({ node: text, message: text }))),
});
export type RecordingView = Decoded<typeof RECORDINGS>['items'][number];

export interface RecordingList {
  readonly items: readonly RecordingView[];
  /** Nodes whose recordings could not be listed, with the reason. */
  readonly failures: readonly { readonly node: string; readonly message: string }[];
}

/** Maximum size of shown text. For a longer recording, the page shows the end. */
const MAX_SHOWN = 256 * 1024;
/** Maximum size of a recording to download. A node keeps at most 10 MiB in a file. */
const MAX_BYTES = 64 << 20;

const pathOf = (rig: string): string => objectPath(RIGS, rig, undefined, 'recordings');

/** Recordings on the rig's current node and on the nodes of its last uses. */
export async function readRecordings(api: Api, rig: string, signal: AbortSignal): Promise<RecordingList> {
  const body = await api.json<unknown>(pathOf(rig), { signal });
  const { items, failures = [] } = decode(RECORDINGS, body, `recordings of ${rig}`);
  return { items, failures };
}

export async function downloadRecording(
  api: Api,
  rig: string,
  { name: file, node }: Pick<RecordingView, 'name' | 'node'>,
): Promise<Blob> {
  const response = await api.open(pathOf(rig) + query({ file, node }), { accept: '*/*' });
  if (Number(response.headers.get('content-length') ?? '0') > MAX_BYTES) {
    await response.body?.cancel();
    throw new Error(`${file} is too large for the browser; use hyperedge rig recordings`);
  }
  return response.blob();
}

/** Lines from the end of a recording, without control characters. */
export async function recordingText(blob: Blob): Promise<{ readonly text: string; readonly isCut: boolean }> {
  const isCut = blob.size > MAX_SHOWN;
  const read = await (isCut ? blob.slice(blob.size - MAX_SHOWN) : blob).text();
  const lines = read.split(/\r*\n/);
  if (isCut && lines.length > 1) lines.shift();
  return { text: lines.map(sanitizeText).join('\n'), isCut };
}
