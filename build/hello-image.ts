/**
 * Builds the sample image reproducibly as a docker-archive from this host's static busybox, without a registry or
 * network. Usage: `node build/hello-image.ts OUT.tar`.
 */
import { busyboxLayer, writeDockerArchive } from './docker-archive.ts';

export const HELLO_IMAGE = 'hyperedge.local/hello:1';

/** Writes the archive to `path`. Throws if there is no static busybox (Debian package busybox-static). */
export async function writeHelloImage(path: string): Promise<void> {
  const config = { Env: ['PATH=/bin'], Cmd: ['/bin/sh'], WorkingDir: '/' };
  await writeDockerArchive(path, [{ tag: HELLO_IMAGE, layers: [await busyboxLayer()], config }]);
}

if (import.meta.filename === process.argv[1]) {
  const out = process.argv[2];
  if (out === undefined) {
    console.error('usage: node build/hello-image.ts OUT.tar');
    process.exit(2);
  }
  await writeHelloImage(out);
}
