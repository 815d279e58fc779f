/**
 * Appends files to the executable, where `src/cli/launch.ts` finds them. After the files follow a JSON table of their
 * positions, and the length of the table as eight hexadecimal digits.
 */
import { appendFile, readFile, stat } from 'node:fs/promises';

/** Appends `files`, which are paths by name, to the executable. */
export async function appendFiles(executable: string, files: Readonly<Record<string, string>>): Promise<void> {
  let { size } = await stat(executable);
  const table: Record<string, readonly [number, number]> = {};
  for (const [name, path] of Object.entries(files)) {
    const content = await readFile(path);
    table[name] = [size, content.length];
    size += content.length;
    await appendFile(executable, content);
  }
  const json = JSON.stringify(table);
  await appendFile(executable, `${json}${json.length.toString(16).padStart(8, '0')}`);
}
