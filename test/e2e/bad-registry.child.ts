/** A registry on loopback with an image whose layer claims to have 100 GB. Usage: node bad-registry.child.ts PORT. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const config = JSON.stringify({
  architecture: process.arch === 'x64' ? 'amd64' : process.arch,
  os: 'linux',
  rootfs: { type: 'layers', diff_ids: [`sha256:${'1'.repeat(64)}`] },
});
const digest = `sha256:${createHash('sha256').update(config).digest('hex')}`;
const manifest = JSON.stringify({
  schemaVersion: 2,
  mediaType: 'application/vnd.oci.image.manifest.v1+json',
  config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest, size: config.length },
  layers: [
    {
      mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
      digest: `sha256:${'2'.repeat(64)}`,
      size: 100 * 1024 ** 3,
    },
  ],
});

createServer((request, response) => {
  if (request.url?.includes('/manifests/') === true) response.end(manifest);
  else if (request.url?.endsWith(digest) === true) response.end(config);
  else response.writeHead(404).end();
}).listen(Number(process.argv[2]), '127.0.0.1');
