/**
 * Makes the sample image as a docker-archive from this host's static busybox: no registry, no network. Usage:
 * `node build/hello-image.ts OUT.tar`. The same bytes every time.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { pack } from 'tar-stream';

export const HELLO_IMAGE = 'hyperedge.local/hello:1';

const CANDIDATES = ['/bin/busybox', '/usr/bin/busybox'];
const EPOCH = new Date(0);

interface Entry {
  readonly name: string;
  readonly type: 'file' | 'directory' | 'symlink';
  readonly mode: number;
  readonly content?: Buffer;
  readonly linkname?: string;
}

/** Writes the archive to `path`. Throws when there is no static busybox (Debian package busybox-static). */
export async function writeHelloImage(path: string): Promise<void> {
  const busybox = await findBusybox();
  const binary = await readFile(busybox);
  const { stdout } = await promisify(execFile)(busybox, ['--list']);
  const applets = stdout.split('\n').filter((each) => /^[\w[.-]+$/.test(each) && each !== 'busybox');
  const directory = (name: string, mode = 0o755): Entry => ({ name, type: 'directory', mode });
  const layer = await tar([
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
  ]);
  const layerDigest = createHash('sha256').update(layer).digest('hex');
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      created: EPOCH.toISOString(),
      config: { Env: ['PATH=/bin'], Cmd: ['/bin/sh'], WorkingDir: '/' },
      rootfs: { type: 'layers', diff_ids: [`sha256:${layerDigest}`] },
      history: [{ created: EPOCH.toISOString(), created_by: 'busybox-static' }],
    }),
  );
  const configName = `${createHash('sha256').update(config).digest('hex')}.json`;
  const manifest = [{ Config: configName, RepoTags: [HELLO_IMAGE], Layers: [`${layerDigest}/layer.tar`] }];
  const archive = await tar([
    { name: configName, type: 'file', mode: 0o644, content: config },
    { name: `${layerDigest}/layer.tar`, type: 'file', mode: 0o644, content: layer },
    { name: 'manifest.json', type: 'file', mode: 0o644, content: Buffer.from(JSON.stringify(manifest)) },
  ]);
  await pipeline([archive], createWriteStream(path));
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

if (import.meta.filename === process.argv[1]) {
  const out = process.argv[2];
  if (out === undefined) {
    console.error('usage: node build/hello-image.ts OUT.tar');
    process.exit(2);
  }
  await writeHelloImage(out);
}
