/** Programs that pods need. They are installed on the host if the executable does not contain them. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';

const PROGRAMS = ['runc', 'conmon', 'nft', 'ip', 'bridge'];
const DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Names of the programs that are not in PATH. */
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
