/** Gathers facts, each with its own time limit, so that a disk or server that does not answer delays no other fact. */
import { CodedError, messageOf } from '../../base/errors.ts';
import type { FactName, FactSources, Facts, Gathered, GatheredFacts, Source } from '../../doctor/port.ts';

export async function gatherFacts(sources: FactSources, names: readonly FactName[]): Promise<GatheredFacts> {
  const found = await Promise.all(
    names.map(async (name) => [name, await gatherOne<Facts[FactName]>(sources[name])] as const),
  );
  return Object.fromEntries(found);
}

/** Value of one source, or the reason why it is unknown. Resolves within the time limit of the source. */
export async function gatherOne<T>({ timeoutMs, read }: Source<T>): Promise<Gathered<T>> {
  const abort = new AbortController();
  const late = Promise.withResolvers<Gathered<T>>();
  const timer = setTimeout(() => {
    abort.abort();
    late.resolve({ state: 'failed', reason: `no answer within ${timeoutMs / 1000} s` });
  }, timeoutMs);
  try {
    return await Promise.race([outcomeOf(read(abort.signal)), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function outcomeOf<T>(work: Promise<T>): Promise<Gathered<T>> {
  try {
    return { state: 'known', value: await work };
  } catch (error) {
    const state = error instanceof CodedError && error.code === 'absent' ? 'absent' : 'failed';
    return { state, reason: messageOf(error) };
  }
}

export const absentFact = (reason: string): CodedError => new CodedError('absent', reason);

/** Runs `read` once; later calls return the same result. */
export function readOnce<T>(read: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= read();
    return result;
  };
}
