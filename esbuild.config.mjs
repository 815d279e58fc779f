/**
 * Bundling to CommonJS: a launcher, a file per long-running command, one for all others, one per worker thread. Native
 * add-ons and workers travel as assets, the commands behind the program.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { OWN_BUNDLES } from './src/cli/links.ts';

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

/**
 * Leaves out the table of commands and the commands that the bundle does not have, and what such commands of the table
 * load when they run.
 * @param {(command: string) => boolean} has
 * @returns {import('esbuild').Plugin}
 */
const commandsOnly = (has) => ({
  name: 'commands-only',
  setup(context) {
    context.onResolve({ filter: /^\.\.?\// }, ({ path, importer, kind }) => {
      const isCommand = importer.endsWith('/src/cli/index.ts') && path.startsWith('./commands/');
      const isImplementation = kind === 'dynamic-import' && importer.includes('/src/cli/commands/');
      return (isCommand && !has(basename(path, '.ts'))) || (isImplementation && !has(basename(importer, '.ts')))
        ? { path, namespace: 'left-out' }
        : undefined;
    });
    context.onLoad({ filter: /.*/, namespace: 'left-out' }, () => ({ contents: 'module.exports = {}' }));
  },
});

/**
 * The bundle as a function of `exports`, `require` and `module`, with an export that evaluates all of its modules.
 * @param {string} text
 */
function wrapped(text) {
  const modules = [...text.matchAll(/\b((?:init|require)_[\w$]*)=__(?:esm|commonJS)\(/g)].map(
    ([, name]) => `${name}()`,
  );
  return `(function(exports,require,module){${text.trimEnd()}module.exports.evaluateAll=()=>{${modules.join(';')}}})`;
}

/**
 * What esbuild leaves unescaped stands in regular expressions. One such character would make V8 hold the whole source
 * with two bytes for each.
 * @param {string} text
 */
const escaped = (text) =>
  text.replaceAll(/[^\0-\x7f]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code > 0xffff) throw new Error(`bundle: the character ${character} has no escape in a regular expression`);
    return `\\u${code.toString(16).padStart(4, '0')}`;
  });

/** What `src/base/versions/version.ts` says of the build; nothing where there is no git or no history. */
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

/**
 * @param {{ entry: string, outfile: string, workers: Set<string>, modules: Set<string>, constants: Record<string,
 * string>, commands?: (command: string) => boolean }} options
 *   `commands`: those that the bundle has; the launcher calls it.
 */
async function bundleOne({ entry, outfile, workers, modules, constants, commands }) {
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
    plugins: [workerReferences(workers), ...(commands === undefined ? [] : [commandsOnly(commands)])],
    write: false,
    define: { 'process.env.NODE_ENV': '"production"', ...constants },
  });
  // Modules without a byte in the output are not shipped.
  for (const { inputs } of Object.values(result.metafile.outputs))
    for (const [module, { bytesInOutput }] of Object.entries(inputs)) if (bytesInOutput > 0) modules.add(module);
  const bundled = escaped(result.outputFiles[0]?.text ?? '');
  const text = commands === undefined ? bundled : wrapped(bundled);
  await writeFile(outfile, text);
  return text.length;
}

/**
 * Bundles everything into `directory`: the launcher `main.cjs`, the commands and the workers they refer to.
 * @param {string} directory
 * @param {{ release?: string | undefined, trust?: string | undefined }} options `release`: another version than the
 * sources have; `trust`: the public key of releases, in PEM
 * @returns {Promise<{ main: string, commands: string[], workers: string[], modules: string[], bytes: number }>}
 * `modules`: the bundled files, relative to the root
 */
export async function bundle(directory, { release, trust } = {}) {
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
    ...(trust === undefined ? {} : { HYPEREDGE_RELEASE_KEY: JSON.stringify(trust) }),
  };
  const all = { workers, modules, constants };
  let bytes = await bundleOne({ ...all, entry: resolve(root, 'src/cli/launch.ts'), outfile: main });
  const commands = [];
  for (const name of [...OWN_BUNDLES, 'others']) {
    const outfile = resolve(directory, `${name}.cjs`);
    /** @param {string} command */
    const has = (command) => (name === 'others' ? !OWN_BUNDLES.includes(command) : command === name);
    bytes += await bundleOne({ ...all, entry: resolve(root, 'src/cli/start.ts'), outfile, commands: has });
    commands.push(outfile);
  }
  const built = [];
  // A worker may start workers of its own.
  for (const worker of workers) {
    const outfile = resolve(directory, workerName(worker));
    bytes += await bundleOne({ ...all, entry: worker, outfile });
    built.push(outfile);
  }
  return { main, commands, workers: built, modules: [...modules], bytes };
}

if (import.meta.filename === process.argv[1]) {
  const directory = resolve(import.meta.dirname, 'dist/bundle');
  const { bytes, main, commands, workers } = await bundle(directory);
  const names = [main, ...commands, ...workers].map((file) => basename(file));
  console.log(`${relative(process.cwd(), directory)}: ${names.join(', ')}, ${Math.round(bytes / 1024)} KiB`);
}
