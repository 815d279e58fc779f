import type { ApiClient } from './types.ts';

/** Resolves when the API server and its store are ready; rejects with the failed checks, or once `signal` aborts. */
export async function checkReady(client: ApiClient, signal: AbortSignal): Promise<void> {
  const { body } = await client.stream('GET', '/readyz', undefined, { signal });
  // The connection is reused only after the answer has been read.
  for await (const _ of body);
}
