import { join } from 'node:path';
import type { Pod } from '../../api/generated/core/v1.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { FileWatch, ManifestFeed } from '../port.ts';
import type { Manifests } from '../ports/files-port.ts';
import { decodeStaticPod, decodeStaticPods } from './static-pod.ts';

/** Manifests are configuration. A larger file is not a manifest. */
const MAX_MANIFEST_BYTES = 1024 * 1024;
const MAX_MANIFESTS = 1000;
const FETCH_TIMEOUT_MS = 10_000;

export interface ManifestSource {
  /** Resolves after the first check. */
  start(): Promise<void>;
  stop(): void;
}

interface SourceOptions {
  readonly nodeName: NodeName;
  readonly frequencyMs: number;
  readonly manifests: Manifests;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with all pods of the source after the first check and after every change. */
  readonly onPods: (pods: readonly Pod[]) => void;
}

/** Directory of manifests with one pod per file, checked on every inotify event and every 20 s. */
export function directorySource(
  options: SourceOptions & { readonly path: string; readonly fileWatch: FileWatch },
): ManifestSource {
  const { path, manifests, clock, log } = options;
  /**
   * Last state of each file. An unchanged file keeps its pod and its config.seen, and an invalid file is logged only
   * once.
   */
  const known = new Map<string, { readonly stamp: string; readonly pod: Pod | undefined }>();

  const look = async (): Promise<void> => {
    const seen = new Set<string>();
    for (const file of await manifestFiles(manifests, path)) {
      const full = join(path, file);
      try {
        const found = await manifests.look(full);
        if (found === undefined) continue;
        seen.add(file);
        const { stamp, sizeBytes } = found;
        if (known.get(file)?.stamp === stamp) continue;
        if (sizeBytes > MAX_MANIFEST_BYTES)
          throw new Error(`static pod ${full}: larger than ${MAX_MANIFEST_BYTES} bytes`);
        const content = await manifests.read(full);
        try {
          const pod = decodeStaticPod(content, {
            nodeName: options.nodeName,
            kind: 'file',
            origin: full,
            nowMs: clock.nowMs(),
          });
          known.set(file, { stamp, pod });
        } catch (error) {
          log.error('static pod refused', { error: messageOf(error) });
          // A partially written file must not stop the running pod, so the last valid manifest is kept.
          known.set(file, { stamp, pod: known.get(file)?.pod });
        }
      } catch (error) {
        log.error('manifest not read', { file: full, error: messageOf(error) });
      }
    }
    for (const file of known.keys()) if (!seen.has(file)) known.delete(file);
    options.onPods([...known.values()].flatMap((entry) => (entry.pod === undefined ? [] : [entry.pod])));
  };

  const loop = everyChange(look, options);
  let watcher: { close(): void } | undefined;
  return {
    async start() {
      watcher = options.fileWatch.watch(path, loop.kick);
      await loop.start();
    },
    stop() {
      watcher?.close();
      loop.stop();
    },
  };
}

async function manifestFiles(manifests: Manifests, path: string): Promise<string[]> {
  const names = await manifests.names(path);
  return names
    .filter((name) => !name.startsWith('.'))
    .sort()
    .slice(0, MAX_MANIFESTS);
}

/** Manifest (a Pod or a PodList) at a URL, fetched every 20 s. A failed fetch changes nothing. */
export function urlSource(options: SourceOptions & { readonly url: string }): ManifestSource {
  let last: string | undefined;
  const look = async (): Promise<void> => {
    const limits = { timeoutMs: FETCH_TIMEOUT_MS, maxBytes: MAX_MANIFEST_BYTES };
    const content = await options.manifests.fetch(options.url, limits);
    if (content === last) return;
    const pods = decodeStaticPods(content, {
      nodeName: options.nodeName,
      kind: 'http',
      origin: options.url,
      nowMs: options.clock.nowMs(),
    });
    last = content;
    options.onPods(pods);
  };
  const loop = everyChange(look, options);
  return { start: loop.start, stop: loop.stop };
}

/** Manifests from another part of the host. A rejected manifest leaves the last valid one of its origin in force. */
export function feedSource(options: SourceOptions & { readonly feed: ManifestFeed }): ManifestSource {
  const { feed, nodeName, clock, log } = options;
  const known = new Map<string, { readonly content: string; readonly pods: readonly Pod[] }>();
  let stop = (): void => {};
  return {
    async start() {
      stop = feed.follow((manifests) => {
        const origins = new Set(manifests.map(({ origin }) => origin));
        for (const origin of known.keys()) if (!origins.has(origin)) known.delete(origin);
        for (const { origin, content } of manifests.slice(0, MAX_MANIFESTS)) {
          const before = known.get(origin);
          if (before?.content === content) continue;
          try {
            if (content.length > MAX_MANIFEST_BYTES)
              throw new Error(`${origin}: larger than ${MAX_MANIFEST_BYTES} bytes`);
            const context = { nodeName, kind: feed.source, origin, nowMs: clock.nowMs() };
            known.set(origin, { content, pods: decodeStaticPods(content, context) });
          } catch (error) {
            log.error('static pod refused', { error: messageOf(error) });
            known.set(origin, { content, pods: before?.pods ?? [] });
          }
        }
        options.onPods([...known.values()].flatMap(({ pods }) => pods));
      });
    },
    stop: () => stop(),
  };
}

/** Runs `look` immediately, on every kick and every `frequencyMs`, never concurrently. */
function everyChange(
  look: () => Promise<void>,
  options: SourceOptions,
): { start(): Promise<void>; kick(): void; stop(): void } {
  let timer: Timer | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  let stopped = false;
  const run = (): Promise<void> => {
    if (running !== undefined) {
      again = true;
      return running;
    }
    running = look()
      .catch((error: unknown) => options.log.error('pod source not read', { error: messageOf(error) }))
      .finally(() => {
        running = undefined;
        if (again && !stopped) {
          again = false;
          void run();
        }
      });
    return running;
  };
  const arm = (): void => {
    if (stopped) return;
    timer = options.clock.setTimer(options.frequencyMs, () => {
      void run();
      arm();
    });
  };
  return {
    async start() {
      await run();
      arm();
    },
    kick: () => void run(),
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}
