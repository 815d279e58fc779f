import type { ApiClient } from './types.ts';

/** Resolves if the API server and its store are ready. Rejects with the failed checks, or when `signal` aborts. */
export async function checkReady(client: ApiClient, signal: AbortSignal): Promise<void> {
  const { body } = await client.stream('GET', '/readyz', undefined, { signal });
  // The connection can be reused only after the body was read.
  for await (const _ of body);
}
