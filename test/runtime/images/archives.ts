/** Layers and archives for the image store's tests. */
import type { Header } from 'tar-stream';
import { sha256, type TarEntry, tarBytes } from '../../conformance/busybox-image.ts';

export const file = (name: string, body: string, extra: Partial<Header> = {}): TarEntry => ({
  header: { name, ...extra },
  body,
});
export const directory = (name: string, extra: Partial<Header> = {}): TarEntry => ({
  header: { name, type: 'directory', mode: 0o755, ...extra },
});
export const link = (name: string, linkname: string, type: 'symlink' | 'link' = 'symlink'): TarEntry => ({
  header: { name, linkname, type },
});

export interface OciImage {
  readonly config: Buffer;
  readonly manifest: Buffer;
  readonly layers: readonly Buffer[];
}

/** `layers` as transferred (possibly compressed), with the digests of their uncompressed form. */
export function ociImage(
  layers: readonly { readonly bytes: Buffer; readonly diffId: string }[],
  architecture = process.arch === 'x64' ? 'amd64' : process.arch,
  config: Readonly<Record<string, unknown>> = {},
): OciImage {
  const configBytes = Buffer.from(
    JSON.stringify({
      architecture,
      os: 'linux',
      config: { Cmd: ['/bin/sh'], ...config },
      rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.diffId) },
    }),
  );
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      config: {
        mediaType: 'application/vnd.oci.image.config.v1+json',
        digest: sha256(configBytes),
        size: configBytes.length,
      },
      layers: layers.map(({ bytes }) => ({
        mediaType: 'application/vnd.oci.image.layer.v1.tar',
        digest: sha256(bytes),
        size: bytes.length,
      })),
    }),
  );
  return { config: configBytes, manifest, layers: layers.map(({ bytes }) => bytes) };
}

export async function ociArchive(image: OciImage, name: string | undefined): Promise<Buffer> {
  const blob = (bytes: Buffer): TarEntry => ({
    header: { name: `./blobs/sha256/${sha256(bytes).slice(7)}` },
    body: bytes,
  });
  const index = JSON.stringify({
    schemaVersion: 2,
    manifests: [
      {
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        digest: sha256(image.manifest),
        size: image.manifest.length,
        ...(name === undefined ? {} : { annotations: { 'org.opencontainers.image.ref.name': name } }),
      },
    ],
  });
  return tarBytes([
    blob(image.config),
    blob(image.manifest),
    ...image.layers.map(blob),
    file('oci-layout', '{"imageLayoutVersion":"1.0.0"}'),
    file('index.json', index),
  ]);
}

/** Archive blocks of a file with binary extended attributes, which tar-stream cannot write. */
export function attributedFile(
  name: string,
  body: string | Buffer,
  attributes: Readonly<Record<string, Buffer>>,
): Buffer {
  const records = Object.entries(attributes).map(([attribute, value]) => {
    const rest = Buffer.concat([Buffer.from(` SCHILY.xattr.${attribute}=`), value, Buffer.from('\n')]);
    let length = rest.length + 1;
    while (length !== rest.length + String(length).length) length = rest.length + String(length).length;
    return Buffer.concat([Buffer.from(String(length)), rest]);
  });
  return Buffer.concat([tarBlocks('pax', 'x', Buffer.concat(records)), tarBlocks(name, '0', Buffer.from(body))]);
}

export const END_OF_ARCHIVE = Buffer.alloc(1024);

export function tarBlocks(name: string, type: string, content: Buffer, linkname = ''): Buffer {
  const blocks = Buffer.alloc(512 + Math.ceil(content.length / 512) * 512);
  blocks.write(name, 0);
  blocks.write('0000755\0', 100);
  blocks.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
  blocks.write('00000000000\0        ', 136);
  blocks.write(type, 156);
  blocks.write(linkname, 157);
  blocks.write('ustar\x0000', 257, 'latin1');
  const sum = blocks.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  blocks.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  content.copy(blocks, 512);
  return blocks;
}
