/**
 * Like `Promise.all`, but rejects only after all work is settled, so that none is in progress while the caller cleans
 * up. Rejects with the first error in the order of the arguments.
 */
export async function together<T extends readonly unknown[] | []>(
  work: T,
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  await Promise.allSettled(work);
  return Promise.all(work);
}
