import { messageOf } from '../../base/errors.ts';

/**
 * Calls `act` for each item in order, also after a call has failed: one object that cannot be written must not keep the
 * others waiting. Throws after the last one: the error, or of several one error with the number and the first message.
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
