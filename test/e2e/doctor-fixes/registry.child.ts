/**
 * A registry that serves the image of an unpacked docker-archive under every name, on port 5000 and with TLS on 5443.
 * Usage: node registry.child.ts DIRECTORY CERTIFICATE KEY.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';

const [, , directory = '', cert = '', key = ''] = process.argv;
const TYPE = 'application/vnd.oci.image';
const blobs = new Map<string, Buffer>();
const add = (bytes: Buffer): { digest: string; size: number } => {
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  blobs.set(digest, bytes);
  return { digest, size: bytes.length };
};
const [image]: { Config: string; Layers: string[] }[] = JSON.parse(
  readFileSync(join(directory, 'manifest.json'), 'utf8'),
);
const read = (name: string): Buffer => readFileSync(join(directory, name));
const manifest = Buffer.from(
  JSON.stringify({
    schemaVersion: 2,
    mediaType: `${TYPE}.manifest.v1+json`,
    config: { mediaType: `${TYPE}.config.v1+json`, ...add(read(image?.Config ?? '')) },
    layers: image?.Layers.map((name) => ({ mediaType: `${TYPE}.layer.v1.tar`, ...add(read(name)) })),
  }),
);
const { digest: manifestDigest } = add(manifest);

const answer: RequestListener = ({ url = '' }, response) => {
  const blob = blobs.get(/sha256:[0-9a-f]{64}$/.exec(url)?.[0] ?? manifestDigest);
  if (url === '/v2/') response.end('{}');
  else if (blob === undefined) response.writeHead(404).end();
  else {
    const type = blob === manifest ? `${TYPE}.manifest.v1+json` : 'application/octet-stream';
    response.writeHead(200, { 'content-type': type, 'content-length': blob.length }).end(blob);
  }
};
createServer(answer).listen(5000, () =>
  createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, answer).listen(5443, () =>
    console.log('ready'),
  ),
);
