/** State of the store, snapshots and uploads of hosts, from the kubelets through the node proxy. */
import type { Node } from '../../../api/generated/core/v1.ts';
import {
  anything,
  type Decoded,
  decode,
  flag,
  list,
  number,
  object,
  oneOf,
  optional,
  type Schema,
  text,
} from '../../../base/decode.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';
import { type Api, hostPath } from '../api/api.ts';
import { bytesText } from '../format.ts';
import { isMaster } from './contact.ts';

/** Uploads a file with the user's token. Resolves with the body of a successful response. */
export type SendFile = (path: string, file: Blob, options: SendOptions) => Promise<string>;

export interface SendOptions {
  readonly signal: AbortSignal;
  onSent(bytes: number): void;
}

const fact = <T>(value: Schema<T>) =>
  object({ state: oneOf('known', 'absent', 'failed'), value: optional(value), reason: optional(text) });

const STATE = object({
  store: fact(
    object({
      quorum: flag,
      members: list(
        object({
          name: text,
          id: text,
          role: text,
          state: text,
          lag: optional(number),
          dbBytes: optional(number),
          errors: list(text),
        }),
      ),
    }),
  ),
  /** Level of the store's log; missing in reports of hosts of earlier releases. */
  level: optional(fact(number)),
  ring: fact(
    list(
      object({
        name: text,
        roles: list(text),
        version: text,
        state: text,
        forMs: number,
        memberId: optional(text),
        fsyncMs: optional(number),
      }),
    ),
  ),
});

const SNAPSHOTS = object({
  directory: text,
  every: optional(text),
  keep: number,
  scheduledDirectory: optional(text),
  isSaving: flag,
  snapshots: list(object({ name: text, revision: number, takenAt: text, bytes: number })),
});
const LIMITS = object({ isBusy: flag, maxBytes: number, freeBytes: number });
const LINE = object({ bytes: optional(number), result: optional(anything), error: optional(text) });
const SAVED = object({ file: text, revision: number, bytes: number });
const IMPORTED = object({
  images: optional(list(object({ id: text, names: list(text) }))),
  bundle: optional(object({ version: text })),
});

export type StoreState = Decoded<typeof STATE>;
export type SnapshotReport = Decoded<typeof SNAPSHOTS>;
export type SavedSnapshot = Decoded<typeof SAVED>;

export interface MemberView {
  readonly name: string;
  readonly id: string;
  readonly role: string;
  readonly level: 'good' | 'warn' | 'bad';
  readonly state: string;
  readonly lag: string;
  readonly fsync: string;
  readonly size: string;
}

/** Number of entries by which a member may lag behind the leader before it is shown as late. */
const LATE_ENTRIES = 1000;

/** Names of the masters, sorted. */
export const masterNames = (nodes: readonly Node[]): readonly string[] =>
  nodes
    .filter(isMaster)
    .map(({ metadata }) => metadata?.name ?? '')
    .sort();

const pathOf = (...steps: readonly string[]): string => `/hyperedge/${steps.map(encodeURIComponent).join('/')}`;

export const readStore = async (api: Api, node: string, signal: AbortSignal): Promise<StoreState> =>
  decode(STATE, await api.hostJson<unknown>(node, pathOf('store'), { signal }), `store of ${node}`);

export type Read<T> = { readonly value: T } | { readonly error: string };

export const failedRead = (error: unknown): { readonly error: string } => ({ error: messageOf(error) });

/** Delay before the next master is queried in parallel, because a host that is down responds late or not at all. */
const NEXT_MASTER_MS = 1_500;

/** The first complete report of a master. Masters are queried in turn; a slow master does not delay the next query. */
export async function firstStore(
  api: Api,
  clock: Clock,
  masters: readonly string[],
  signal: AbortSignal,
): Promise<Read<StoreState>> {
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);
  let last: Read<StoreState> = { error: 'no master answers' };
  const pending = new Set<Promise<Read<StoreState> | undefined>>();
  const query = (node: string): void => {
    const queried: Promise<Read<StoreState> | undefined> = readStore(api, node, either)
      .then(
        (value) => {
          if (value.store.state === 'known') return { value };
          last = { value };
          return undefined;
        },
        (error: unknown) => {
          if (!('value' in last)) last = failedRead(error);
          return undefined;
        },
      )
      .finally(() => pending.delete(queried));
    pending.add(queried);
  };
  try {
    for (const node of masters) {
      query(node);
      const found = await Promise.race([...pending, pause(clock, NEXT_MASTER_MS)]);
      if (found !== undefined) return found;
    }
    while (pending.size > 0) {
      const found = await Promise.race(pending);
      if (found !== undefined) return found;
    }
    return last;
  } finally {
    ended.abort();
  }
}

const pause = (clock: Clock, ms: number): Promise<undefined> =>
  new Promise((resolve) => {
    clock.setTimer(ms, () => resolve(undefined));
  });

export const readSnapshots = async (api: Api, node: string, signal: AbortSignal): Promise<SnapshotReport> =>
  decode(SNAPSHOTS, await api.hostJson<unknown>(node, pathOf('snapshots'), { signal }), `snapshots of ${node}`);

/** Members with the flush times that the gossip ring reports. */
export function memberViews({ store, ring }: StoreState): readonly MemberView[] {
  const plain = (id: string | undefined): string | undefined => id?.replace(/^0+/, '');
  const flushes = new Map((ring.value ?? []).map(({ memberId, fsyncMs }) => [plain(memberId), fsyncMs]));
  return (store.value?.members ?? []).map(({ name, id, role, state, lag, dbBytes, errors }) => {
    const fsyncMs = flushes.get(plain(id));
    const isLate = (lag ?? 0) >= LATE_ENTRIES;
    return {
      name: name === '' ? '(not started)' : name,
      id,
      role,
      level: state !== 'ok' || errors.length > 0 ? 'bad' : isLate ? 'warn' : 'good',
      state: [state, ...errors].join(': '),
      lag: lag === undefined ? '' : String(lag),
      fsync: fsyncMs === undefined ? '' : `${fsyncMs < 10 ? fsyncMs.toFixed(1) : Math.round(fsyncMs)} ms`,
      size: dbBytes === undefined ? '' : bytesText(dbBytes),
    };
  });
}

/**
 * Saves a snapshot on the host. `onBytes` is called with the number of bytes written so far. The host continues if the
 * request is cancelled.
 */
export async function saveSnapshot(api: Api, node: string, onBytes: (bytes: number) => void): Promise<SavedSnapshot> {
  const response = await api.open(hostPath(node, pathOf('snapshots')), { method: 'POST' });
  return decode(SAVED, await resultOf(response, onBytes), `snapshot of ${node}`);
}

/** Downloads a snapshot. Throws if fewer bytes arrive than the host announced. */
export async function downloadSnapshot(
  api: Api,
  node: string,
  name: string,
  { signal, onBytes }: { readonly signal: AbortSignal; readonly onBytes: (done: number, total: number) => void },
): Promise<Blob> {
  const response = await api.open(hostPath(node, pathOf('snapshots', name)), { method: 'POST', signal, accept: '*/*' });
  const total = Number(response.headers.get('content-length') ?? Number.NaN);
  if (response.body === null || !Number.isInteger(total)) throw new Error(`${name}: the host announced no length`);
  let done = 0;
  const counter = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      done += chunk.length;
      onBytes(done, total);
      controller.enqueue(chunk);
    },
  });
  const blob = await new Response(response.body.pipeThrough(counter)).blob();
  if (blob.size !== total)
    throw new Error(`${name}: ${blob.size} of ${total} bytes arrived; download the snapshot again`);
  return blob;
}

export interface ArchiveUpload {
  readonly node: string;
  readonly kind: 'images' | 'bundles';
  readonly file: File;
  /** Whether a bundle may contain a release that is older than the cluster's version. */
  readonly acceptsOlder?: boolean;
}

/** Uploads an archive to a node and imports it there. Resolves with a text about the imported content. */
export async function uploadArchive(
  api: Api,
  send: SendFile,
  { node, kind, file, acceptsOlder = false }: ArchiveUpload,
  options: SendOptions,
): Promise<readonly string[]> {
  const { signal } = options;
  const limits = decode(LIMITS, await api.hostJson<unknown>(node, pathOf(kind), { signal }), `uploads to ${node}`);
  if (limits.isBusy) throw new Error(`${node}: another archive is being uploaded; wait until it is imported`);
  for (const [most, reason] of [
    [limits.maxBytes, 'the limit of uploads'],
    [limits.freeBytes, 'the free space of the node'],
  ] as const)
    if (file.size > most) throw new Error(`${file.name}: ${bytesText(file.size)} exceed ${reason}, ${bytesText(most)}`);
  const answer = await send(hostPath(node, pathOf(kind)) + (acceptsOlder ? '?force=true' : ''), file, options);
  const { images = [], bundle } = decode(IMPORTED, await resultOf(new Response(answer)), `upload of ${file.name}`);
  return bundle === undefined
    ? images.flatMap(({ id, names }) => (names.length === 0 ? [id] : names))
    : [bundle.version];
}

/**
 * Reads the result in the last line of a response. Throws the error in that line, or an error if there is no result.
 */
async function resultOf(response: Response, onBytes: (bytes: number) => void = () => undefined): Promise<unknown> {
  const decoder = new TextDecoder();
  let rest = '';
  const take = (line: string): { readonly result: unknown } | undefined => {
    if (line === '') return undefined;
    const { bytes, result, error } = decode(LINE, JSON.parse(line), 'line of the host');
    if (error !== undefined) throw new Error(error);
    if (bytes !== undefined) onBytes(bytes);
    return result === undefined ? undefined : { result };
  };
  const reader = response.body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read().catch((error: unknown) => {
      throw new Error(`the connection to the host has ended: ${messageOf(error)}`);
    })) ?? { done: true, value: undefined };
    const lines = `${rest}${decoder.decode(value, { stream: !done })}`.split('\n');
    rest = done ? '' : (lines.pop() ?? '');
    for (const line of lines) {
      const found = take(line);
      if (found !== undefined) return found.result;
    }
    if (done) throw new Error('the host ended the connection without a result; read the list again');
  }
}
