/**
 * Bundles the web console (`src/console`) into files with their hash in the name, compresses them, and concatenates them
 * for the executable. Fails if the console exceeds its size limits.
 *
 *   node build/console.ts [DIRECTORY]   default: dist/console
 */
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, extname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { build, type Metafile } from 'esbuild';
import type { ConsoleManifest } from '../src/apiserver/console/manifest.ts';

const compress = promisify(gzip);
const root = join(import.meta.dirname, '..');
const MAX_FIRST_LOAD = 200 * 1024;
const MAX_ALL = 1536 * 1024;
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export interface BundledConsole {
  /** Path of the manifest. `contents` is the path of the concatenated files. */
  readonly manifest: string;
  readonly contents: string;
  /** Bundled source files, relative to the root. */
  readonly modules: readonly string[];
  /** Compressed size in bytes of the files that the first view needs. `all` is the compressed size of all files. */
  readonly firstLoad: number;
  readonly all: number;
}

export async function bundleConsole(directory = join(root, 'dist/console')): Promise<BundledConsole> {
  const { outputFiles, metafile } = await build({
    entryPoints: [join(root, 'src/console/index.tsx'), join(root, 'src/console/icon.svg')],
    outdir: '/console/assets',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome120', 'firefox121', 'safari17'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.svg': 'copy' },
    minify: true,
    legalComments: 'none',
    logLevel: 'error',
    absWorkingDir: root,
    metafile: true,
    write: false,
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  const files = new Map(outputFiles.map(({ path, contents }) => [`assets/${basename(path)}`, Buffer.from(contents)]));
  const only = (pattern: RegExp): string => {
    const [found, ...others] = [...files.keys()].filter((name) => pattern.test(name));
    if (found === undefined || others.length > 0) throw new Error(`console: not one file matches ${pattern}`);
    return found;
  };
  const script = only(/^assets\/index-\w+\.js$/);
  const style = only(/^assets\/index-\w+\.css$/);
  const icon = only(/^assets\/icon-\w+\.svg$/);
  const page = (await readFile(join(root, 'src/console/index.html'), 'utf8'))
    .replace('SCRIPT', script)
    .replace('STYLE', style)
    .replace('ICON', icon)
    .replaceAll(/(href|src)="assets/g, '$1="/console/assets');
  files.set('index.html', Buffer.from(page));

  const entries: ConsoleManifest['files'][number][] = [];
  const parts: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of [...files].sort(([left], [right]) => (left < right ? -1 : 1))) {
    const body = await compress(content, { level: constants.Z_BEST_COMPRESSION });
    const type = TYPES[extname(name)];
    if (type === undefined) throw new Error(`console: ${name} has no media type; add it to TYPES`);
    const etag = createHash('sha256').update(body).digest('base64url').slice(0, 22);
    entries.push({ name, type, etag, offset, length: body.length });
    parts.push(body);
    offset += body.length;
  }
  const needed = new Set(['index.html', style, icon, ...staticImports(metafile, basename(script))]);
  const firstLoad = entries.filter(({ name }) => needed.has(name)).reduce((sum, { length }) => sum + length, 0);
  if (firstLoad > MAX_FIRST_LOAD)
    throw new Error(`console: the first load has ${firstLoad} bytes; at most ${MAX_FIRST_LOAD}, load parts lazily`);
  if (offset > MAX_ALL) throw new Error(`console: all files have ${offset} bytes; at most ${MAX_ALL}`);
  await mkdir(directory, { recursive: true });
  const manifest = join(directory, 'console.json');
  const contents = join(directory, 'console.bin');
  await writeFile(manifest, JSON.stringify({ files: entries } satisfies ConsoleManifest));
  await writeFile(contents, Buffer.concat(parts));
  return { manifest, contents, modules: Object.keys(metafile.inputs), firstLoad, all: offset };
}

/**
 * Names below `assets` of the entry, the overview page and the files that both import statically. A browser loads these
 * files for its first view.
 */
function staticImports({ outputs }: Metafile, entry: string): string[] {
  const byName = new Map(Object.entries(outputs).map(([path, output]) => [basename(path), output]));
  const found = new Set<string>();
  const visit = (name: string): void => {
    if (found.has(name)) return;
    found.add(name);
    for (const { path, kind } of byName.get(name)?.imports ?? [])
      if (kind === 'import-statement') visit(basename(path));
  };
  visit(entry);
  for (const [name, { entryPoint }] of byName) if (entryPoint === 'src/console/pages/overview/page.tsx') visit(name);
  return [...found].map((name) => `assets/${name}`);
}

if (import.meta.filename === process.argv[1]) {
  const { contents, firstLoad, all } = await bundleConsole(process.argv[2]);
  const kib = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KiB`;
  console.log(`${relative(process.cwd(), contents)}: first load ${kib(firstLoad)}, all ${kib(all)}`);
}
