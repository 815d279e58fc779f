/** Programs of the host that pods need and that are not part of the package. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';

const PROGRAMS = ['runc', 'conmon', 'nft', 'ip', 'bridge'];
const DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Names of the missing ones. */
export async function missingPrograms(): Promise<string[]> {
  const missing: string[] = [];
  for (const program of PROGRAMS) {
    const found = await Promise.all(
      DIRECTORIES.map((directory) =>
        access(join(directory, program), constants.X_OK).then(
          () => true,
          () => false,
        ),
      ),
    );
    if (!found.includes(true)) missing.push(program);
  }
  return missing;
}
