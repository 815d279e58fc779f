/** Writes reproducible images in docker-archive format without a registry, network or container tools. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, open, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { pack } from 'tar-stream';

const CANDIDATES = ['/bin/busybox', '/usr/bin/busybox'];
const EPOCH = new Date(0);

/** A file, directory or symbolic link in a layer. The name has no leading slash. */
export interface Entry {
  readonly name: string;
  readonly type: 'file' | 'directory' | 'symlink';
  readonly mode: number;
  readonly content?: Buffer;
  readonly linkname?: string;
}

export interface ImageToWrite {
  readonly tag: string;
  readonly layers: readonly (readonly Entry[])[];
  /** Field `config` of the image configuration: Env, Cmd, Entrypoint, User … */
  readonly config: Readonly<Record<string, unknown>>;
  /** Architecture in the notation of GOARCH. Default: this host's. */
  readonly architecture?: string;
}

export const directory = (name: string, mode = 0o755): Entry => ({ name, type: 'directory', mode });

/** Writes `images` to one archive at `path`. A layer is stored once if several images refer to the same array. */
export async function writeDockerArchive(path: string, images: readonly ImageToWrite[]): Promise<void> {
  const file = await open(path, 'w');
  const written = new Map<readonly Entry[], string>();
  const stream = pack();
  const drained = (async () => {
    for await (const chunk of stream) await file.write(chunk as Buffer);
  })();
  const add = (name: string, content: Buffer): void => {
    stream.entry({ name, type: 'file', mode: 0o644, mtime: EPOCH, uid: 0, gid: 0 }, content);
  };
  try {
    const manifest: unknown[] = [];
    for (const image of images) {
      const digests: string[] = [];
      for (const layer of image.layers) {
        let digest = written.get(layer);
        if (digest === undefined) {
          const bytes = await tar(layer);
          digest = createHash('sha256').update(bytes).digest('hex');
          add(`${digest}/layer.tar`, bytes);
          written.set(layer, digest);
        }
        digests.push(digest);
      }
      const config = Buffer.from(
        JSON.stringify({
          architecture: image.architecture ?? (process.arch === 'x64' ? 'amd64' : process.arch),
          os: 'linux',
          created: EPOCH.toISOString(),
          config: image.config,
          rootfs: { type: 'layers', diff_ids: digests.map((digest) => `sha256:${digest}`) },
          history: digests.map(() => ({ created: EPOCH.toISOString(), created_by: 'hyperedge' })),
        }),
      );
      const configName = `${createHash('sha256').update(config).digest('hex')}.json`;
      add(configName, config);
      manifest.push({
        Config: configName,
        RepoTags: [image.tag],
        Layers: digests.map((digest) => `${digest}/layer.tar`),
      });
    }
    add('manifest.json', Buffer.from(JSON.stringify(manifest)));
    stream.finalize();
    await drained;
  } finally {
    await file.close();
  }
}

/**
 * Layer with the static busybox at `path`, by default this host's. Throws if there is none (package busybox-static).
 */
export async function busyboxLayer(path?: string): Promise<readonly Entry[]> {
  const busybox = path ?? (await findBusybox());
  const binary = await readFile(busybox);
  const { stdout } = await promisify(execFile)(busybox, ['--list']);
  const applets = stdout.split('\n').filter((each) => /^[\w[.-]+$/.test(each) && each !== 'busybox');
  return [
    directory('bin'),
    { name: 'bin/busybox', type: 'file', mode: 0o755, content: binary },
    ...applets.map((name): Entry => ({ name: `bin/${name}`, type: 'symlink', mode: 0o777, linkname: 'busybox' })),
    directory('etc'),
    {
      name: 'etc/passwd',
      type: 'file',
      mode: 0o644,
      content: Buffer.from('root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n'),
    },
    { name: 'etc/group', type: 'file', mode: 0o644, content: Buffer.from('root:x:0:\nnogroup:x:65534:\n') },
    directory('root', 0o700),
    directory('tmp', 0o1777),
    directory('www'),
  ];
}

async function findBusybox(): Promise<string> {
  for (const path of CANDIDATES) {
    const found = await access(path).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  throw new Error('no busybox on this host; install the Debian package busybox-static');
}

async function tar(entries: readonly Entry[]): Promise<Buffer> {
  const stream = pack();
  for (const { name, type, mode, content, linkname } of entries) {
    const header = { name, type, mode, mtime: EPOCH, uid: 0, gid: 0, ...(linkname === undefined ? {} : { linkname }) };
    if (content === undefined) stream.entry(header);
    else stream.entry(header, content);
  }
  stream.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
