/** Bundling: one CommonJS file for the executable, one per worker thread. Native add-ons and workers travel as assets. */
import { mkdir, readFile } from 'node:fs/promises';
import { basename, dirname, relative, resolve } from 'node:path';
import { build } from 'esbuild';

/** How sources name their worker threads: `new URL('./worker.ts', import.meta.url)`. */
const WORKER = /new URL\(\s*'(\.\.?\/[^']+\.ts)',\s*import\.meta\.url\s*,?\s*\)/g;

/** @param {string} file */
export const workerName = (file) => `${basename(dirname(file))}-${basename(file, '.ts')}.cjs`;

/**
 * Replaces references to worker sources by references to the unpacked assets, and remembers them.
 * @param {Set<string>} workers
 * @returns {import('esbuild').Plugin}
 */
const workerReferences = (workers) => ({
  name: 'worker-references',
  setup(context) {
    context.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const contents = source.replaceAll(WORKER, (_, file) => {
        const worker = resolve(dirname(path), file);
        workers.add(worker);
        return `new URL(${JSON.stringify(workerName(worker))}, globalThis.hyperedgeAssets)`;
      });
      return { contents, loader: 'ts' };
    });
  },
});

/** @param {{ entry: string, outfile: string, workers: Set<string> }} options */
async function bundleOne({ entry, outfile, workers }) {
  const result = await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    // `import()` of what is in the bundle becomes a deferred call; a command pays only for what it loads.
    supported: { 'dynamic-import': false },
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'error',
    metafile: true,
    external: ['*.node'],
    plugins: [workerReferences(workers)],
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  return Object.values(result.metafile.outputs).reduce((sum, output) => sum + output.bytes, 0);
}

/**
 * Bundles everything into `directory`: `main.cjs` and the workers it refers to.
 * @param {string} directory
 * @returns {Promise<{ main: string, workers: string[], bytes: number }>}
 */
export async function bundle(directory) {
  const root = import.meta.dirname;
  await mkdir(directory, { recursive: true });
  /** @type {Set<string>} */
  const workers = new Set();
  const main = resolve(directory, 'main.cjs');
  let bytes = await bundleOne({ entry: resolve(root, 'src/main.ts'), outfile: main, workers });
  const built = [];
  // A worker may start workers of its own.
  for (const worker of workers) {
    const outfile = resolve(directory, workerName(worker));
    bytes += await bundleOne({ entry: worker, outfile, workers });
    built.push(outfile);
  }
  return { main, workers: built, bytes };
}

if (import.meta.filename === process.argv[1]) {
  const directory = resolve(import.meta.dirname, 'dist/bundle');
  const { bytes, workers } = await bundle(directory);
  const names = ['main.cjs', ...workers.map((file) => basename(file))];
  console.log(`${relative(process.cwd(), directory)}: ${names.join(', ')}, ${Math.round(bytes / 1024)} KiB`);
}
