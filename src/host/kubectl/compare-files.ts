/** Files for an external `diff`, in directories named as those of kubectl. */

import { randomInt } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Run = (file: string, args: readonly string[]) => Promise<number>;

/** Resolves with the exit code of the program. The files are removed. */
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
