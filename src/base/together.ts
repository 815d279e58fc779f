/**
 * Resolves as `Promise.all`. When one of them rejects it waits for the others all the same, so that nothing of them is
 * under way while the caller clears up, and rejects with the first in their order.
 */
export async function together<T extends readonly unknown[] | []>(
  work: T,
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  await Promise.allSettled(work);
  return Promise.all(work);
}
