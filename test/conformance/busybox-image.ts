/** Builds a docker-archive from the machine's static busybox. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { type Header, pack } from 'tar-stream';

export interface TarEntry {
  readonly header: Partial<Header> & Pick<Header, 'name'>;
  readonly body?: string | Uint8Array;
}

export async function tarBytes(entries: readonly TarEntry[]): Promise<Buffer> {
  const archive = pack();
  for (const { header, body } of entries) archive.entry(header, body ?? '');
  archive.finalize();
  const parts: Uint8Array[] = [];
  for await (const part of archive) parts.push(part as Uint8Array);
  return Buffer.concat(parts);
}

export const sha256 = (bytes: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

const APPLETS =
  'sh cat echo sleep ls stty tty id wc dd nc ip ps kill env head tail hostname yes true false mkdir rm touch mount cut grep httpd seq unshare setsid';

/** The image's only layer: busybox with its usual links, accounts and empty directories. */
export async function busyboxLayer(): Promise<Buffer> {
  const binary = await readFile('/bin/busybox');
  const directory = (name: string, mode = 0o755): TarEntry => ({ header: { name, type: 'directory', mode } });
  return tarBytes([
    directory('bin/'),
    { header: { name: 'bin/busybox', mode: 0o755 }, body: binary },
    ...APPLETS.split(' ').map(
      (name): TarEntry => ({ header: { name: `bin/${name}`, type: 'symlink', linkname: 'busybox' } }),
    ),
    directory('etc/'),
    { header: { name: 'etc/passwd' }, body: 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001::/home:/bin/sh\n' },
    { header: { name: 'etc/group' }, body: 'root:x:0:\napp:x:1001:\nextra:x:2000:app\n' },
    directory('tmp/', 0o1777),
    directory('root/', 0o700),
    directory('home/'),
    directory('data/'),
  ]);
}

export interface ArchiveImage {
  readonly tags: readonly string[];
  readonly layers: readonly Buffer[];
  readonly config?: Readonly<Record<string, unknown>>;
  /** Overrides the layer digests in the image configuration. */
  readonly diffIds?: readonly string[];
}

export async function dockerArchive(image: ArchiveImage): Promise<Buffer> {
  const config = JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Env: ['PATH=/bin'], Cmd: ['/bin/sh'], ...image.config },
    rootfs: { type: 'layers', diff_ids: image.diffIds ?? image.layers.map(sha256) },
  });
  const names = image.layers.map((_, index) => `layer${index}/layer.tar`);
  const manifest = JSON.stringify([{ Config: 'config.json', RepoTags: image.tags, Layers: names }]);
  return tarBytes([
    { header: { name: 'config.json' }, body: config },
    ...image.layers.map((body, index): TarEntry => ({ header: { name: names[index] ?? '' }, body })),
    { header: { name: 'manifest.json' }, body: manifest },
  ]);
}

export async function writeBusyboxArchive(path: string, tag: string): Promise<void> {
  const bytes = await dockerArchive({ tags: [tag], layers: [await busyboxLayer()], config: { StopSignal: 'SIGTERM' } });
  await pipeline([bytes], createWriteStream(path));
}
