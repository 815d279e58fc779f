/** Ignores NotFound for writes whose object may have been deleted in the meantime. */
import { isApiError } from '../../api/meta/status.ts';

export async function ignoreNotFound(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}
