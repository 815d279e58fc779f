/** Files for an external `diff` program. Their directories are named as kubectl's. */

import { randomInt } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Run = (file: string, args: readonly string[]) => Promise<number>;

/** Writes the files, runs the program and removes the files. Resolves with the exit code of the program. */
export async function compareFiles(
  program: string,
  args: readonly string[],
  directories: Readonly<Record<string, ReadonlyMap<string, string>>>,
  run: Run,
): Promise<number> {
  const paths: string[] = [];
  try {
    for (const [name, files] of Object.entries(directories)) {
      const path = join(tmpdir(), `${name}-${randomInt(2 ** 31)}`);
      await mkdir(path, { mode: 0o700 });
      paths.push(path);
      for (const [file, content] of files) await writeFile(join(path, file), content, { mode: 0o600 });
    }
    return await run(program, [...args, ...paths]);
  } finally {
    for (const path of paths) await rm(path, { recursive: true, force: true });
  }
}
