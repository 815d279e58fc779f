/** Executables with changed sources, for updates between builds that store data differently. */
import assert from 'node:assert/strict';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { projectRoot, run } from '../../e2e/harness.ts';

export interface SourceChange {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const COPIED = ['src', 'build', 'systemd', 'esbuild.config.mjs', 'package.json', 'package-lock.json', 'LICENSE'];

/** Builds release `version` from the sources with `changes` in the empty directory `work`. Resolves with its path. */
export async function buildChanged(work: string, version: string, changes: readonly SourceChange[]): Promise<string> {
  for (const name of COPIED) await cp(join(projectRoot, name), join(work, name), { recursive: true });
  await symlink(join(projectRoot, 'node_modules'), join(work, 'node_modules'));
  await mkdir(join(work, 'dist'));
  await cp(join(projectRoot, 'dist/cache'), join(work, 'dist/cache'), { recursive: true });
  for (const { file, from, to } of changes) {
    const text = await readFile(join(work, file), 'utf8');
    assert.ok(text.includes(from), `${file} has no ${from}`);
    await writeFile(
      join(work, file),
      text.replace(from, () => to),
    );
  }
  const output = join(work, 'hyperedge');
  const build = [join(work, 'build/package.ts'), '--release', version, '--output', output];
  const built = await run(process.execPath, build, { timeoutMs: 400_000 });
  assert.equal(built.code, 0, built.stderr);
  return output;
}
