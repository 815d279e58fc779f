/** Reproducible tar archives: sorted entries, one modification time, owner root. */
import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip, constants as zlib } from 'node:zlib';
import { pack } from 'tar-stream';

/** A file, directory or symbolic link. The path is absolute, as on the target system. */
export type Entry = {
  readonly path: string;
} & (
  | { readonly type: 'directory'; readonly mode?: number }
  | { readonly type: 'link'; readonly target: string }
  | { readonly type: 'file'; readonly mode?: number; readonly content: Buffer }
  | { readonly type: 'copy'; readonly mode?: number; readonly source: string; readonly size: number }
);

/** Adds the missing parent directories and sorts by path, parents first. Throws if a path is given twice. */
export function withParents(entries: readonly Entry[]): Entry[] {
  const byPath = new Map<string, Entry>();
  for (const entry of entries) {
    if (byPath.has(entry.path)) throw new Error(`${entry.path}: is given twice`);
    byPath.set(entry.path, entry);
  }
  for (const { path } of entries) {
    const parts = path.split('/').slice(1, -1);
    for (let depth = 1; depth <= parts.length; depth += 1) {
      const parent = `/${parts.slice(0, depth).join('/')}`;
      if (!byPath.has(parent)) byPath.set(parent, { path: parent, type: 'directory' });
    }
  }
  return [...byPath.values()].sort((left, right) => (left.path < right.path ? -1 : 1));
}

/** Writes `entries` as a gzip-compressed tar with names such as `./usr/bin/hyperedge` to the end of `file`. */
export async function writeTarGz(file: FileHandle, entries: readonly Entry[], epoch: number): Promise<void> {
  const tar = pack();
  const mtime = new Date(epoch * 1000);
  const fill = async (): Promise<void> => {
    const base = { mtime, uid: 0, gid: 0, uname: 'root', gname: 'root' };
    tar.entry({ ...base, name: './', type: 'directory', mode: 0o755 });
    for (const entry of entries) {
      const name = `.${entry.path}`;
      if (entry.type === 'directory')
        tar.entry({ ...base, name: `${name}/`, type: 'directory', mode: entry.mode ?? 0o755 });
      else if (entry.type === 'link')
        tar.entry({ ...base, name, type: 'symlink', mode: 0o777, linkname: entry.target });
      else if (entry.type === 'file')
        tar.entry({ ...base, name, type: 'file', mode: entry.mode ?? 0o644 }, entry.content);
      else {
        const header = { ...base, name, type: 'file', mode: entry.mode ?? 0o644, size: entry.size } as const;
        await pipeline(createReadStream(entry.source), tar.entry(header));
      }
    }
    tar.finalize();
  };
  const compressed = createGzip({ level: zlib.Z_DEFAULT_COMPRESSION });
  const write = async (source: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of source) await file.write(chunk);
  };
  await Promise.all([fill(), pipeline(tar, compressed, write)]);
}

/** Compresses the content to a gzip file without a name and a time. */
export async function gzipped(content: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const compressor = createGzip({ level: zlib.Z_BEST_COMPRESSION });
  compressor.end(content);
  for await (const chunk of compressor) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
