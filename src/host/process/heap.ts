/** V8 settings for servers on few processors. Measurements: docs/decisions/0012. */
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';

/**
 * Reduces the frequency of major collections. By default, V8 marks the whole heap whenever a few more megabytes are
 * allocated, and the heap of a server grows with the objects of the cluster. With this setting, the heap may grow to
 * four times the size of the objects that survived the last collection. `collectWhenIdle` frees the garbage when the
 * process is idle. The flag is set at run time, because as a command line option it would invalidate the code cache of
 * the executable.
 */
export function collectLessOften(): void {
  setFlagsFromString('--heap-growing-percent=300');
}

/**
 * Runs scavenges on one thread. In an idle process, a scavenge of the small young generation takes less than a
 * millisecond, and waking four threads would double this time. In a busy component, a scavenge of 16 MB takes 2 to 3
 * ms; four threads are not faster while other components use the CPUs. Measurements: docs/decisions/0012.
 */
export function scavengeAlone(): void {
  setFlagsFromString('--no-parallel-scavenge');
}

/**
 * Size of the young generation, which consists of two halves. Requests to an API server allocate more than requests to
 * a store.
 */
export const YOUNG_BYTES = { store: 8 << 20, api: 32 << 20 } as const;
const CLOSE_POLLS = 1000;
const CLOSE_MS = 10;
const POLL_MS = 500;

/**
 * Limits the size of the young generation. When many objects survive scavenges, for example during the loading of data,
 * V8 grows the young generation to 32 MB or more (130 MB in an API server that loads 100,000 objects) and keeps this
 * size. A quarter of the size is as fast. At run time, the growth can be stopped but not limited, so a timer checks the
 * size: often while data is loaded, and rarely later. If a collection shrinks the young generation to its minimum, the
 * timer permits growth again.
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
/** Share of one CPU below which the process counts as idle. */
const IDLE_SHARE = 0.05;
const IDLE_POLLS = 3;
/**
 * Minimum heap growth since the last collection of an idle process that justifies another collection: in bytes, and as
 * a share of the heap.
 */
const WORTH_BYTES = 8 << 20;
const WORTH_SHARE = 0.15;
/**
 * Growth of memory outside of the heap that justifies a collection. Most of this memory belongs to closed TLS
 * connections and is freed with their objects. V8 does not include it in its own limits.
 */
const WORTH_NATIVE_BYTES = 16 << 20;
/**
 * Like `WORTH_NATIVE_BYTES`, for a busy process. The limit is higher, because repeated collections make requests a
 * fifth slower.
 */
const WORTH_NATIVE_BUSY_BYTES = 128 << 20;
/** Amount of new external memory at which V8 starts to mark. */
const EXTERNAL_PRESSURE = 80 << 20;

/**
 * Releases memory when the process is idle. V8 collects garbage only during allocations, so the garbage of a busy
 * period would remain while the process is idle. An explicit collection would pause the process. Therefore a large
 * external buffer is allocated for a moment: V8 then starts an incremental collection, which pauses the process only at
 * its end. With `--optimize-for-size`, V8 immediately returns the freed pages to the system. A collection also starts
 * when memory outside of the heap grows.
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
    // The heap may have become smaller through V8's own collections or through the last collection started here.
    kept = Math.min(kept, held);
    const native = nativeBytes() ?? keptNative;
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

/** Undefined if the process has no free file descriptor, which the measurement needs. */
function nativeBytes(): number | undefined {
  try {
    return process.memoryUsage.rss() - getHeapStatistics().total_heap_size;
  } catch {
    return undefined;
  }
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
    // The system cannot provide the memory. V8 has already collected as much garbage as possible before it throws.
    if (!(error instanceof RangeError)) throw error;
  } finally {
    setFlagsFromString('--no-optimize-for-size');
  }
}
