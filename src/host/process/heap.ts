/** V8 settings for servers on few processors. Measurements: docs/decisions/0012. */
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';

/**
 * Reduces the frequency of major collections. A server's heap grows with the objects of the cluster, and by default V8
 * marks all of it again for every few allocated megabytes. With this setting it waits until the heap is four times as
 * large as the objects that survived the last collection. `collectWhenIdle` frees the garbage when the process is idle.
 * Set at run time, because as a command line option it would invalidate the executable's code cache.
 */
export function collectLessOften(): void {
  setFlagsFromString('--heap-growing-percent=300');
}

/**
 * Runs scavenges on one thread. A small young generation, as in an idle process, is scavenged about once a second in
 * less than a millisecond, and waking four threads costs as much again. A busy component scavenges 16 MB in 2 to 3 ms;
 * four threads do not shorten that while other components use the CPUs. Measurements: docs/decisions/0012.
 */
export function scavengeAlone(): void {
  setFlagsFromString('--no-parallel-scavenge');
}

/** Size of the young generation, both halves. An API server's requests allocate more than a store's. */
export const YOUNG_BYTES = { store: 8 << 20, api: 32 << 20 } as const;
const CLOSE_POLLS = 1000;
const CLOSE_MS = 10;
const POLL_MS = 500;

/**
 * Limits the size of the young generation. For objects that survive a few scavenges, as loaded data does, V8 grows the
 * young generation to 32 MB and more (to 130 MB in an API server that loads 100,000 objects) and keeps that size,
 * although a quarter of it costs neither puts nor requests any time. Its growth can be stopped at run time but not
 * limited, so a timer checks the size, often while data is loaded and rarely later. A collection that releases memory
 * shrinks it to the minimum; then it must grow again.
 */
export function keepYoungGenerationSmall(bytes: number): void {
  let looks = 0;
  let grows = true;
  const look = (): void => {
    const size = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
    if (grows ? size >= bytes : size < bytes / 2) {
      grows = !grows;
      setFlagsFromString(`--semi-space-growth-factor=${grows ? 2 : 1}`);
    }
    looks += 1;
    setTimeout(look, looks < CLOSE_POLLS ? CLOSE_MS : POLL_MS).unref();
  };
  look();
}

const IDLE_POLL_MS = 1000;
/** CPU usage below which the process counts as idle, as a share of one processor. */
const IDLE_SHARE = 0.05;
const IDLE_POLLS = 3;
/**
 * Minimum heap growth since the last idle collection that justifies another one: in bytes, and relative to the heap.
 */
const WORTH_BYTES = 8 << 20;
const WORTH_SHARE = 0.15;
/**
 * Growth of memory outside of the heap that justifies a collection. Most of it belongs to closed TLS connections and is
 * released with their objects; V8 does not account for it.
 */
const WORTH_NATIVE_BYTES = 16 << 20;
/** Limit of garbage for a busy process: collections make its requests a fifth slower while they are repeated. */
const WORTH_NATIVE_BUSY_BYTES = 128 << 20;
/** Amount of new external memory at which V8 starts to mark. */
const EXTERNAL_PRESSURE = 80 << 20;

/**
 * Releases memory while the process is idle. V8 collects only when memory is allocated, so the garbage of a busy period
 * would stay as long as the process is idle. An explicit collection would pause the process completely. Instead,
 * external memory is allocated for a moment, so that V8 starts an incremental collection, which pauses only at its end.
 * In the mode for small memory V8 then returns pages immediately. The same happens when memory outside of the heap
 * grows.
 */
export function collectWhenIdle(): void {
  let used = process.threadCpuUsage();
  let lookedMs = performance.now();
  let idle = 0;
  let kept = 0;
  let keptNative = Number.POSITIVE_INFINITY;
  const look = (): void => {
    const usage = process.threadCpuUsage(used);
    const nowMs = performance.now();
    const share = (usage.user + usage.system) / 1000 / (nowMs - lookedMs);
    used = process.threadCpuUsage();
    lookedMs = nowMs;
    idle = share < IDLE_SHARE ? idle + 1 : 0;
    const held = heldBytes();
    // The heap has become smaller, by itself or by the previously started collection.
    kept = Math.min(kept, held);
    const native = process.memoryUsage.rss() - getHeapStatistics().total_heap_size;
    keptNative = Math.min(keptNative, native);
    if (native - keptNative > (idle < IDLE_POLLS ? WORTH_NATIVE_BUSY_BYTES : WORTH_NATIVE_BYTES)) {
      keptNative = native;
      beginCollection();
      return;
    }
    if (idle < IDLE_POLLS || held - kept < WORTH_BYTES + kept * WORTH_SHARE) return;
    idle = 0;
    kept = held;
    beginCollection();
  };
  setInterval(look, IDLE_POLL_MS).unref();
}

function heldBytes(): number {
  const { total_heap_size: heap, external_memory: external } = getHeapStatistics();
  return heap + external;
}

function beginCollection(): void {
  setFlagsFromString('--optimize-for-size');
  try {
    // The buffer is never written, so the system allocates no memory for it.
    new ArrayBuffer(EXTERNAL_PRESSURE);
  } catch (error) {
    // The system cannot reserve the memory. V8 has then already collected as much as possible.
    if (!(error instanceof RangeError)) throw error;
  } finally {
    setFlagsFromString('--no-optimize-for-size');
  }
}
