/** Bundling: one CommonJS file for the executable, one per worker thread. Native add-ons and workers travel as assets. */
import { execFile } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { basename, dirname, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
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

/** What `src/base/version.ts` says of the build; nothing where there is no git or no history. */
async function commitConstants() {
  /** @param {string[]} args */
  const git = async (...args) => (await promisify(execFile)('git', ['-C', import.meta.dirname, ...args])).stdout.trim();
  try {
    const [commit = '', date = ''] = (await git('log', '-1', '--format=%H %ct')).split(' ');
    const changed = await git('status', '--porcelain', '--untracked-files=no');
    return {
      HYPEREDGE_COMMIT: JSON.stringify(commit),
      HYPEREDGE_COMMIT_DATE: JSON.stringify(`${new Date(Number(date) * 1000).toISOString().slice(0, 19)}Z`),
      HYPEREDGE_TREE_STATE: JSON.stringify(changed === '' ? 'clean' : 'dirty'),
    };
  } catch {
    return {};
  }
}

/** @param {{ entry: string, outfile: string, workers: Set<string>, modules: Set<string>, constants: Record<string, string> }} options */
async function bundleOne({ entry, outfile, workers, modules, constants }) {
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
    absWorkingDir: import.meta.dirname,
    external: ['*.node'],
    plugins: [workerReferences(workers)],
    define: { 'process.env.NODE_ENV': '"production"', ...constants },
  });
  // Modules without a byte in the output are not shipped.
  for (const { inputs } of Object.values(result.metafile.outputs))
    for (const [module, { bytesInOutput }] of Object.entries(inputs)) if (bytesInOutput > 0) modules.add(module);
  return Object.values(result.metafile.outputs).reduce((sum, output) => sum + output.bytes, 0);
}

/**
 * Bundles everything into `directory`: `main.cjs` and the workers it refers to.
 * @param {string} directory
 * @param {string | undefined} release another version than the sources have
 * @returns {Promise<{ main: string, workers: string[], modules: string[], bytes: number }>} `modules`: the bundled files, relative to the root
 */
export async function bundle(directory, release = undefined) {
  const root = import.meta.dirname;
  await mkdir(directory, { recursive: true });
  /** @type {Set<string>} */
  const workers = new Set();
  /** @type {Set<string>} */
  const modules = new Set();
  const main = resolve(directory, 'main.cjs');
  const constants = {
    ...(await commitConstants()),
    ...(release === undefined ? {} : { HYPEREDGE_RELEASE: JSON.stringify(release) }),
  };
  let bytes = await bundleOne({ entry: resolve(root, 'src/main.ts'), outfile: main, workers, modules, constants });
  const built = [];
  // A worker may start workers of its own.
  for (const worker of workers) {
    const outfile = resolve(directory, workerName(worker));
    bytes += await bundleOne({ entry: worker, outfile, workers, modules, constants });
    built.push(outfile);
  }
  return { main, workers: built, modules: [...modules], bytes };
}

if (import.meta.filename === process.argv[1]) {
  const directory = resolve(import.meta.dirname, 'dist/bundle');
  const { bytes, workers } = await bundle(directory);
  const names = ['main.cjs', ...workers.map((file) => basename(file))];
  console.log(`${relative(process.cwd(), directory)}: ${names.join(', ')}, ${Math.round(bytes / 1024)} KiB`);
}
