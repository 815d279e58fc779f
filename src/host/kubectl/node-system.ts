/** Implements the client's system and terminal ports with Node. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, extname, join, resolve as resolvePath } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ignore, messageOf } from '../../base/errors.ts';
import { ClientError } from '../../kubectl/core/errors.ts';
import type { LocalListener, LocalSocket, System, Terminal } from '../../kubectl/port.ts';
import { connect, type KubeconfigPlaces, readKubeconfig } from './connection.ts';

const MANIFEST_SUFFIXES: ReadonlySet<string> = new Set(['.json', '.yaml', '.yml']);
const FETCH_TIMEOUT_MS = 30_000;

/** Terminal on stdin, stdout and stderr of this process. */
export function processTerminal(): Terminal {
  const { stdin, stdout, stderr } = process;
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    drained: () => (stdout.writableNeedDrain ? once(stdout, 'drain') : undefined),
    readAll: async () => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of stdin) chunks.push(chunk as Uint8Array);
      return Buffer.concat(chunks).toString('utf8');
    },
    stdin,
    isInputTerminal: stdin.isTTY === true,
    isOutputTerminal: stdout.isTTY === true,
    size: () => (stdout.isTTY === true ? { columns: stdout.columns, rows: stdout.rows } : undefined),
    onResize: (listener) => {
      stdout.on('resize', listener);
      return () => void stdout.off('resize', listener);
    },
    raw: () => {
      if (stdin.isTTY !== true) return () => {};
      stdin.setRawMode(true);
      return () => void stdin.setRawMode(false);
    },
  };
}

export function nodeSystem(places: KubeconfigPlaces): System {
  return {
    now: () => Date.now(),
    monotonicMs: () => performance.now(),
    sleep: (ms, signal) => delay(ms, undefined, signal === undefined ? {} : { signal }),
    readFile: (path) => readFile(path).catch((error: unknown) => Promise.reject(unreadable(path, error))),
    writeFile: (path, bytes) => writeFile(path, bytes, { mode: 0o600 }),
    appendFile: async (path, bytes, { truncate }) => {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, bytes, { flag: truncate ? 'w' : 'a' });
    },
    exists: (path) =>
      stat(path).then(
        () => true,
        () => false,
      ),
    absolutePath: (path) => resolvePath(path),
    realPath: (path) => realpath(path),
    runProgram,
    compareFiles: async (...args) => (await import('./compare-files.ts')).compareFiles(...args, runProgram),
    programs,
    manifestFiles,
    filesIn,
    fetchText,
    parseSigningRequest: async (pem) => (await import('../../pki/index.ts')).parseSigningRequest(pem),
    edit,
    keep,
    connect: (options) => connect(options, places),
    kubeconfig: (path) => readKubeconfig(path, places),
    readCache,
    writeCache,
    environment: (name) => process.env[name],
    tar,
    unpack: async (archive, options) => (await import('./unpack.ts')).unpack(archive, options),
    listen,
  };
}

const cacheDirectory = (): string => join(process.env['KUBECACHEDIR'] || join(homedir(), '.kube/cache'), 'hyperedge');

async function readCache(name: string, maxAgeMs: number): Promise<string | undefined> {
  const path = join(cacheDirectory(), name);
  try {
    const { mtimeMs } = await stat(path);
    return Date.now() - mtimeMs > maxAgeMs ? undefined : await readFile(path, 'utf8');
  } catch {
    // The cache does not exist or cannot be read.
    return undefined;
  }
}

async function writeCache(name: string, text: string): Promise<void> {
  const path = join(cacheDirectory(), name);
  try {
    await mkdir(cacheDirectory(), { recursive: true, mode: 0o750 });
    await writeFile(`${path}.${process.pid}`, text, { mode: 0o660 });
    await rename(`${path}.${process.pid}`, path);
  } catch {
    // The home directory is read-only. Without a cache, the next command reads the API resources again.
  }
}

function unreadable(path: string, error: unknown): ClientError {
  return new ClientError(
    (error as NodeJS.ErrnoException).code === 'ENOENT'
      ? `the path "${path}" does not exist`
      : `${path}: ${messageOf(error)}`,
  );
}

async function manifestFiles(path: string, recursive: boolean): Promise<readonly string[]> {
  const facts = await stat(path).catch((error: unknown) => Promise.reject(unreadable(path, error)));
  if (!facts.isDirectory()) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries.sort((left, right) => (left.name < right.name ? -1 : 1))) {
    const inner = join(path, entry.name);
    if (entry.isDirectory() ? recursive : MANIFEST_SUFFIXES.has(extname(entry.name)))
      found.push(...(entry.isDirectory() ? await manifestFiles(inner, true) : [inner]));
  }
  return found;
}

async function filesIn(path: string): Promise<readonly string[] | undefined> {
  const facts = await stat(path).catch((error: unknown) => Promise.reject(unreadable(path, error)));
  if (!facts.isDirectory()) return undefined;
  const entries = await readdir(path, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();
}

async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) }).catch((error: unknown) =>
    Promise.reject(
      new ClientError(
        `unable to read URL "${url}": ${messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error)}`,
      ),
    ),
  );
  if (!response.ok)
    throw new ClientError(
      `unable to read URL "${url}", server reported ${response.status} ${response.statusText}, status code=${response.status}`,
    );
  return response.text();
}

async function edit(name: string, text: string): Promise<{ readonly text: string; readonly path: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'hyperedge-edit-'));
  const path = join(directory, name);
  try {
    await writeFile(path, text, { mode: 0o600 });
    const editor = process.env['KUBE_EDITOR'] || process.env['EDITOR'] || 'vi';
    const code = await new Promise<number | null>((resolve, reject) => {
      // A shell runs the editor, because the variable may contain arguments, as in "code --wait".
      const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'edit', path], { stdio: 'inherit' });
      child.once('error', reject);
      child.once('exit', resolve);
    });
    if (code !== 0) throw new ClientError(`there was a problem with the editor ${JSON.stringify(editor)}`);
    return { text: await readFile(path, 'utf8'), path };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function keep(name: string, text: string): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), 'hyperedge-edit-')), name);
  await writeFile(path, text, { mode: 0o600 });
  return path;
}

function runProgram(
  file: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, [...args], { stdio: 'inherit', env: { ...process.env, ...variables } });
    child.once('error', (error) => reject(new ClientError(`${file}: ${messageOf(error)}`)));
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

async function programs(
  prefix: string,
  onUnreadable: (directory: string, reason: string) => void,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const directory of new Set((process.env['PATH'] ?? '').split(delimiter))) {
    if (directory.trim() === '') continue;
    try {
      for (const name of (await readdir(directory)).sort())
        if (name.startsWith(prefix)) {
          const path = join(directory, name);
          const facts = await stat(path);
          if (facts.isFile() && (facts.mode & 0o111) !== 0) found.push(path);
        }
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      onUnreadable(directory, isMissing ? `open ${directory}: no such file or directory` : messageOf(error));
    }
  }
  return found;
}

async function* tar(args: readonly string[]): AsyncIterable<Uint8Array> {
  const child = spawn('tar', [...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  ended.catch(ignore('awaited after the output'));
  // A child that could not be started for lack of file descriptors has no streams.
  if (child.pid === undefined) await ended;
  for await (const chunk of child.stdout) yield chunk as Uint8Array;
  const code = await ended;
  if (code !== 0) throw new ClientError(`tar: exit status ${code}`);
}

function listen(address: string, port: number, onConnection: (socket: LocalSocket) => void): Promise<LocalListener> {
  return new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => socket.destroy());
      onConnection({
        input: socket,
        write: (bytes) =>
          new Promise((done) => {
            if (socket.destroyed || socket.write(bytes)) done();
            else {
              socket.once('drain', done);
              socket.once('close', () => done());
            }
          }),
        end: () => void socket.end(),
        destroy: () => void socket.destroy(),
      });
    });
    server.once('error', (error) => reject(new ClientError(`unable to listen on port ${port}: ${messageOf(error)}`)));
    server.listen(port, address, () => {
      const bound = server.address();
      resolve({
        port: typeof bound === 'object' && bound !== null ? bound.port : port,
        close: () => void server.close(),
      });
    });
  });
}
