/** Images of the drills, and a certificate of an authority that no host trusts. */
import { join } from 'node:path';
import { busyboxLayer, directory, type Entry, writeDockerArchive } from '../../../build/docker-archive.ts';
import { type Drill, GATEWAY, PLAIN_REGISTRY } from './drill.ts';

/** Image that exists in the registry for this architecture. */
export const APP = `${PLAIN_REGISTRY}/app:1`;
/** Image that exists in no registry. */
export const MISSING = 'lab.invalid/missing:1';
const BULK = 'lab.invalid/bulk:1';
export const BULK_BYTES = 40 << 20;
const BULK_FILES = 4000;

/** Architecture that differs from that of this host. */
export const FOREIGN = process.arch === 'arm64' ? 'amd64' : 'arm64';

/** Name of the archive of an image in the scratch directory. */
export const archiveOf = (drill: Drill, name: string): string => join(drill.scratch, `${name}.tar`);

/** Writes all archives, and starts the registry with its certificate. */
export async function prepareImages(drill: Drill): Promise<void> {
  const config = { Env: ['PATH=/bin'], Cmd: ['/bin/sleep', '100000'] };
  const busybox = await busyboxLayer();
  const write = (name: string, tag: string, layer: readonly Entry[]): Promise<void> =>
    writeDockerArchive(archiveOf(drill, name), [{ tag, layers: [layer], config }]);
  await write('app', APP, busybox);
  await write('missing', MISSING, busybox);
  const layer: readonly Entry[] = [
    directory('bin'),
    { name: 'bin/sleep', type: 'file', mode: 0o755, content: foreign() },
  ];
  await writeDockerArchive(archiveOf(drill, 'foreign'), [{ tag: APP, layers: [layer], config, architecture: FOREIGN }]);
  const files = Array.from(
    { length: BULK_FILES },
    (_, at): Entry => ({ name: `f${at}`, type: 'file', mode: 0o644, content: Buffer.of(1) }),
  );
  await write('bulk', BULK, [
    { name: 'big', type: 'file', mode: 0o644, content: Buffer.alloc(BULK_BYTES, 7) },
    ...files,
  ]);
  const at = drill.scratch;
  await drill.must(
    `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ${at}/ca.key -out ${at}/ca.crt \\
      -days 30 -subj '/CN=Lab CA' 2>/dev/null
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ${at}/registry.key -out ${at}/registry.csr \\
      -subj '/CN=registry' 2>/dev/null
    echo 'subjectAltName = IP:${GATEWAY}' > ${at}/registry.ext
    openssl x509 -req -in ${at}/registry.csr -CA ${at}/ca.crt -CAkey ${at}/ca.key -days 30 -extfile ${at}/registry.ext \\
      -out ${at}/registry.crt 2>/dev/null`,
  );
  await drill.serve(archiveOf(drill, 'app'), { cert: join(at, 'registry.crt'), key: join(at, 'registry.key') });
}

/** Header of an executable for another processor. */
function foreign(): Buffer {
  const header = Buffer.alloc(4096);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(process.arch === 'arm64' ? 62 : 183, 18);
  header.writeUInt32LE(1, 20);
  header.writeUInt16LE(64, 52);
  return header;
}
