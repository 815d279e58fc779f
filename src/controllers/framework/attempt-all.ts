import { messageOf } from '../../base/errors.ts';

/**
 * Calls `act` for each item in order and continues after failures, so that one failing object does not block the
 * remaining ones. Throws at the end: the single error, or an error with the number of failures and the first message.
 */
export async function attemptAll<T>(items: Iterable<T>, act: (item: T) => Promise<unknown>): Promise<void> {
  const errors: unknown[] = [];
  for (const item of items) {
    try {
      await act(item);
    } catch (error) {
      errors.push(error);
    }
  }
  const [first] = errors;
  if (errors.length === 1) throw first;
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} writes failed, first: ${messageOf(first)}`);
}
