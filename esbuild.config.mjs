/**
 * Bundles the sources to CommonJS: a launcher, one file for each long-running command, one file for all other commands,
 * and one for each worker thread. Native add-ons and workers become assets of the executable; the files of commands are
 * appended to it.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { OWN_BUNDLES } from './src/cli/invocation.ts';

/** Form in which sources refer to the entry file of a worker thread. */
const WORKER = /new URL\(\s*'(\.\.?\/[^']+\.ts)',\s*import\.meta\.url\s*,?\s*\)/g;

/** @param {string} file */
export const workerName = (file) => `${basename(dirname(file))}-${basename(file, '.ts')}.cjs`;

/**
 * Replaces references to worker sources by references to the unpacked assets, and adds the sources to `workers`.
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
 * Replaces commands that do not belong to the bundle, and the modules that they import when they run, by empty modules.
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
 * Wraps the bundle in a function of `exports`, `require` and `module`, and adds an export that evaluates all modules.
 * @param {string} text
 */
function wrapped(text) {
  const modules = [...text.matchAll(/\b((?:init|require)_[\w$]*)=__(?:esm|commonJS)\(/g)].map(
    ([, name]) => `${name}()`,
  );
  return `(function(exports,require,module){${text.trimEnd()}module.exports.evaluateAll=()=>{${modules.join(';')}}})`;
}

/**
 * Escapes the characters beyond ASCII that esbuild leaves in regular expressions. With one such character, V8 stores
 * two bytes for each character of the source.
 * @param {string} text
 */
const escaped = (text) =>
  text.replaceAll(/[^\0-\x7f]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code > 0xffff) throw new Error(`bundle: the character ${character} has no escape in a regular expression`);
    return `\\u${code.toString(16).padStart(4, '0')}`;
  });

/** Constants that `src/base/versions/version.ts` reads. Empty without git or without a commit. */
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
 *   `commands`: selects the commands of a bundle that the launcher calls; undefined for other bundles.
 */
async function bundleOne({ entry, outfile, workers, modules, constants, commands }) {
  const result = await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    // `import()` of a bundled module becomes a deferred call, so a command evaluates only the modules that it uses.
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
  // A module that adds no byte to the output is not part of the executable, so its license is not required.
  for (const { inputs } of Object.values(result.metafile.outputs))
    for (const [module, { bytesInOutput }] of Object.entries(inputs)) if (bytesInOutput > 0) modules.add(module);
  const bundled = escaped(result.outputFiles[0]?.text ?? '');
  const text = commands === undefined ? bundled : wrapped(bundled);
  await writeFile(outfile, text);
  return text.length;
}

/**
 * Bundles the launcher `main.cjs`, the commands and their workers into `directory`.
 * @param {string} directory
 * @param {{ release?: string | undefined, trust?: string | undefined }} options `release`: version, if it is not
 * that of package.json; `trust`: public key of releases, in PEM
 * @returns {Promise<{ main: string, commands: string[], workers: string[], modules: string[], bytes: number }>}
 * `modules`: bundled files, relative to the root of the repository
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
  // A worker may refer to other workers, which are then added to the set.
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
