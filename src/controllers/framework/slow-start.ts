/**
 * Runs `count` calls in batches of 1, 2, 4 …. Stops after a batch with a failure, such as a quota or an unreachable
 * API. Resolves with the number of successes and the first error. Source: upstream's slowStartBatch.
 */
export async function slowStart(
  count: number,
  call: (index: number) => Promise<void>,
): Promise<{ readonly succeeded: number; readonly error: unknown }> {
  let succeeded = 0;
  for (let size = 1; succeeded < count; size = Math.min(size * 2, MAX_BATCH)) {
    const batch = Math.min(size, count - succeeded);
    const offset = succeeded;
    const results = await Promise.allSettled(Array.from({ length: batch }, (_, index) => call(offset + index)));
    const failed = results.filter((result) => result.status === 'rejected');
    succeeded += batch - failed.length;
    const first = failed[0];
    if (first !== undefined) return { succeeded, error: first.reason };
  }
  return { succeeded, error: undefined };
}

/** Maximum number of concurrent requests of one batch. Further requests would only wait in the client's queue. */
const MAX_BATCH = 64;
