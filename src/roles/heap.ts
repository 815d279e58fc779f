/** V8 settings for servers on few processors. Measurements: docs/decisions/0012. */
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';

/**
 * A server's heap grows with what the cluster holds, and V8 by itself marks all of it again for every few megabytes
 * that come to it. With this it waits until the heap is four times what was last found alive; what is garbage until
 * then goes when there is little to do (`collectWhenIdle`). Set at run time: on the command line it would make the
 * executable's compiled code unusable.
 */
export function collectLessOften(): void {
  setFlagsFromString('--heap-growing-percent=300');
}

/**
 * A space for new objects that is small, as in an idle process, is scavenged about once a second in less than a
 * millisecond. Waking four threads for that costs as much again. A busy component scavenges 16 MB in 2 to 3 ms, which
 * four threads do not shorten where other components use the processors: measurements in docs/decisions/0012.
 */
export function scavengeAlone(): void {
  setFlagsFromString('--no-parallel-scavenge');
}

/**
 * Of the young generation, both halves: what a store needs, and what an API server does, whose requests make more on
 * their way.
 */
export const YOUNG_BYTES = { store: 8 << 20, api: 32 << 20 } as const;
const CLOSE_LOOKS = 1000;
const CLOSE_MS = 10;
const LOOK_MS = 500;

/**
 * For what makes objects that live a little longer, as data that is loaded does: V8 lets the space in which objects are
 * born grow to 32 MB and more (to 130 MB in an API server that loads 100,000 objects), and keeps it, without a put or a
 * request costing any less than with a quarter of that. Its growth can be stopped at run time, not bounded; so somebody
 * has to look, often while the data is loaded and now and then later. A collection that gives memory back makes the
 * space as small as can be: then it has to grow again.
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
    setTimeout(look, looks < CLOSE_LOOKS ? CLOSE_MS : LOOK_MS).unref();
  };
  look();
}

const IDLE_LOOK_MS = 1000;
/** Of one processor. */
const IDLE_SHARE = 0.05;
const IDLE_LOOKS = 3;
/** What has come to the heap since it was last collected so, at least, and in proportion to what there was then. */
const WORTH_BYTES = 8 << 20;
const WORTH_SHARE = 0.15;
/**
 * Memory outside of the heap, most of it of TLS connections that are closed, is released with the objects that own it;
 * V8 does not know of it.
 */
const WORTH_NATIVE_BYTES = 16 << 20;
/** The same while the process is busy: such a collection costs requests a fifth more for as long as it is repeated. */
const WORTH_NATIVE_BUSY_BYTES = 128 << 20;
/** V8 begins to mark when so much memory outside of its heap has come since it last did. */
const EXTERNAL_PRESSURE = 80 << 20;

/**
 * Gives memory back when the process has nothing to do: V8 collects garbage when there is more, so what a busy time has
 * left stays for as long as nothing comes. Asked for a collection outright it does everything in one go. It is
 * therefore made to begin one by itself, as if much memory outside of its heap had come: it marks beside everything
 * else and stops for the end of it alone. In the mode for small memory it then gives pages back at once. The same when
 * memory outside of the heap grows.
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
    // Smaller by itself, or by the collection that was begun before.
    kept = Math.min(kept, held);
    const native = process.memoryUsage.rss() - getHeapStatistics().total_heap_size;
    keptNative = Math.min(keptNative, native);
    if (native - keptNative > (idle < IDLE_LOOKS ? WORTH_NATIVE_BUSY_BYTES : WORTH_NATIVE_BYTES)) {
      keptNative = native;
      beginCollection();
      return;
    }
    if (idle < IDLE_LOOKS || held - kept < WORTH_BYTES + kept * WORTH_SHARE) return;
    idle = 0;
    kept = held;
    beginCollection();
  };
  setInterval(look, IDLE_LOOK_MS).unref();
}

function heldBytes(): number {
  const { total_heap_size: heap, external_memory: external } = getHeapStatistics();
  return heap + external;
}

function beginCollection(): void {
  setFlagsFromString('--optimize-for-size');
  try {
    // Never written to, so the system has nothing to give for it.
    new ArrayBuffer(EXTERNAL_PRESSURE);
  } catch (error) {
    // The system does not promise what it need not give: then V8 has collected all it could.
    if (!(error instanceof RangeError)) throw error;
  } finally {
    setFlagsFromString('--no-optimize-for-size');
  }
}
