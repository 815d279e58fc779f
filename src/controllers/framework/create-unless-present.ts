/**
 * Creates an object that a controller maintains in every namespace. A concurrent creation or a terminating namespace is
 * not an error.
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
