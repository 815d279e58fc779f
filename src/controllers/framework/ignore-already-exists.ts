/** Ignores AlreadyExists for creates whose object another client may have created in the meantime. */
import { isApiError } from '../../api/meta/status.ts';

export async function ignoreAlreadyExists(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
}
