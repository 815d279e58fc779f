/** Localhost seccomp profiles of containers. Source: OCI runtime specification, `linux.seccomp`. */
import { readFile, stat } from 'node:fs/promises';
import { messageOf } from '../../../base/errors.ts';
import { type ContainerSecurity, RuntimeError } from '../../port.ts';

const MAX_PROFILE_BYTES = 1024 * 1024;

/**
 * Returns undefined if the container uses no localhost profile. Throws RuntimeError 'create-failed' with the file name.
 */
export async function localSeccompProfile(security: ContainerSecurity): Promise<object | undefined> {
  const path = security.seccompProfile;
  if (security.seccomp !== 'localhost' || path === undefined) return undefined;
  const fail = (why: string, cause?: unknown): RuntimeError =>
    new RuntimeError('create-failed', `cannot load seccomp profile ${JSON.stringify(path)}: ${why}`, { cause });
  let profile: unknown;
  try {
    const { size } = await stat(path);
    if (size > MAX_PROFILE_BYTES) throw new Error(`more than ${MAX_PROFILE_BYTES} bytes`);
    profile = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw fail(messageOf(error), error);
  }
  if (typeof profile !== 'object' || profile === null || !('defaultAction' in profile))
    throw fail('not an object with a defaultAction');
  return profile;
}
