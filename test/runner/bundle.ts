/**
 * Bundles test files that load many modules. A test of controllers loads 1,400 modules, which takes Node longer than
 * most tests. Bundles share chunks. `import.meta` keeps the values of the source file.
 */
import { existsSync, readFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

/** Number of modules below which loading takes less time than bundling. */
const MANY_MODULES = 300;
const IMPORT = /\b(?:from|import)\s*\(?\s*'(\.[^']+\.ts)'/g;

const importMeta: Plugin = {
  name: 'import-meta',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      if (!text.includes('import.meta.')) return undefined;
      const contents = text
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
        .replaceAll('import.meta.filename', JSON.stringify(path))
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
      return { contents, loader: 'ts' };
    });
  },
};

/** Bundles `programs` and those of the test files that load many modules. Returns the source of each bundle. */
export async function bundleTests(
  root: string,
  files: readonly string[],
  programs: readonly string[] = [],
  manyModules = MANY_MODULES,
): Promise<ReadonlyMap<string, string>> {
  const directory = join(root, 'dist/cache/bundled');
  await rm(directory, { recursive: true, force: true });
  const imports = new Map<string, readonly string[]>();
  const large = [...programs, ...files.filter((file) => countModules(file, imports) > manyModules)];
  if (large.length === 0) return new Map();
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: large,
    bundle: true,
    splitting: true,
    keepNames: true,
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    packages: 'external',
    outdir: directory,
    outbase: root,
    outExtension: { '.js': '.mjs' },
    metafile: true,
    logLevel: 'error',
    plugins: [importMeta],
  });
  const sources = new Map<string, string>();
  // Modules that are loaded with `import()` are entry points too.
  for (const [output, { entryPoint }] of Object.entries(metafile.outputs))
    if (entryPoint !== undefined && large.includes(resolve(root, entryPoint)))
      sources.set(resolve(root, output), resolve(root, entryPoint));
  return sources;
}

function countModules(file: string, imports: Map<string, readonly string[]>): number {
  const found = new Set([file]);
  for (const path of found) for (const imported of importsOf(path, imports)) found.add(imported);
  return found.size;
}

function importsOf(path: string, known: Map<string, readonly string[]>): readonly string[] {
  const before = known.get(path);
  if (before !== undefined) return before;
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const found = [...text.matchAll(IMPORT)].map(([, name = '']) => resolve(dirname(path), name));
  known.set(path, found);
  return found;
}
