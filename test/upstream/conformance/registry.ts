/**
 * A registry with the suite's images on a host's loopback address, without TLS: `node registry.ts DIRECTORY
 * PORT`. It prints `NAME:TAG` when an image is pulled by tag, and exits when its parent closes the pipe.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'index.json';

/** Entry of an OCI layout's index. */
interface Reference {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  /** `NAME:TAG` below the registry. */
  readonly annotations: { readonly 'org.opencontainers.image.ref.name': string };
}

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const blobPath = (directory: string, digest: string): string => join(directory, 'blobs', digest.replace(':', '/'));

/**
 * Converts an unpacked docker-archive to an OCI layout below `directory` with compressed layers. `registry` is the part
 * of the tags that is removed from the names.
 */
export async function writeLayout(archive: string, directory: string, registry: string): Promise<void> {
  await mkdir(join(directory, 'blobs/sha256'), { recursive: true });
  const add = async (bytes: Buffer): Promise<{ digest: string; size: number }> => {
    const digest = digestOf(bytes);
    await writeFile(blobPath(directory, digest), bytes);
    return { digest, size: bytes.length };
  };
  const compressed = new Map<string, Promise<{ digest: string; size: number }>>();
  const layer = async (name: string) => add(await promisify(gzip)(await readFile(join(archive, name)), { level: 1 }));
  const images = JSON.parse(await readFile(join(archive, 'manifest.json'), 'utf8')) as readonly {
    readonly Config: string;
    readonly RepoTags: readonly string[];
    readonly Layers: readonly string[];
  }[];
  const manifests: Reference[] = [];
  for (const { Config, RepoTags, Layers } of images) {
    const layers: object[] = [];
    for (const name of Layers) {
      const known = compressed.get(name) ?? layer(name);
      compressed.set(name, known);
      layers.push({ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', ...(await known) });
    }
    const config = {
      mediaType: 'application/vnd.oci.image.config.v1+json',
      ...(await add(await readFile(join(archive, Config)))),
    };
    const manifest = await add(Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config, layers })));
    for (const tag of RepoTags) {
      if (!tag.startsWith(`${registry}/`)) throw new Error(`${tag} is not an image of ${registry}`);
      const name = tag.slice(registry.length + 1);
      manifests.push({
        mediaType: MANIFEST,
        ...manifest,
        annotations: { 'org.opencontainers.image.ref.name': name },
      });
    }
  }
  await writeFile(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  await writeFile(join(directory, INDEX), JSON.stringify({ schemaVersion: 2, manifests }));
}

/**
 * A server for the layout that does not listen yet. `onPull` receives the name of each image whose manifest is
 * requested by tag.
 */
export async function serveLayout(directory: string, onPull: (image: string) => void): Promise<Server> {
  const { manifests } = JSON.parse(await readFile(join(directory, INDEX), 'utf8')) as {
    readonly manifests: readonly Reference[];
  };
  const digests = new Map(
    manifests.map((each) => [each.annotations['org.opencontainers.image.ref.name'], each.digest]),
  );
  return createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    const [, name, kind, reference = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/([\w.:-]+)$/.exec(path) ?? [];
    if (path === '/v2/') return void response.end('{}');
    const digest = reference.startsWith('sha256:') ? reference : digests.get(`${name}:${reference}`);
    const file = digest === undefined ? undefined : blobPath(directory, digest);
    const found = file === undefined ? undefined : await stat(file).catch(() => undefined);
    if (file === undefined || found === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' });
      return void response.end(JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: path }] }));
    }
    if (kind === 'manifests' && request.method === 'GET' && digest !== reference) onPull(`${name}:${reference}`);
    response.writeHead(200, {
      'content-type': kind === 'manifests' ? MANIFEST : 'application/octet-stream',
      'content-length': found.size,
      'docker-content-digest': digest,
    });
    if (request.method === 'HEAD') return void response.end();
    createReadStream(file)
      .on('error', () => response.destroy())
      .pipe(response);
  }
}

if (import.meta.main) {
  const [directory = '.', port] = process.argv.slice(2);
  const server = await serveLayout(directory, (image) => console.log(image));
  server.listen(Number(port), '127.0.0.1', () => console.log('serving'));
  process.stdin.on('end', () => process.exit()).resume();
}
