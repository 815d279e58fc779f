/**
 * Creation of objects that a controller owes to every namespace; a concurrent creation or a terminating namespace is no
 * failure.
 */
import { isApiError } from '../../api/meta/status.ts';
import { isNamespaceTerminating } from './pod-control.ts';

export async function createUnlessPresent(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (isApiError(error, 'AlreadyExists') || isApiError(error, 'NotFound') || isNamespaceTerminating(error)) return;
    throw error;
  }
}
