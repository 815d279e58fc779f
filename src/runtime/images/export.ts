/**
 * Writes images as a docker-archive. Layers are packed from their unpacked files with GNU tar; whiteouts get the names
 * of the OCI image layer specification again.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { adding, counted, type OnProgress } from '../../base/command-line/progress.ts';
import { messageOf } from '../../base/errors.ts';
import { sha256Hex } from '../../wire/digest.ts';
import { RuntimeError } from '../port.ts';
import { objectOf } from './image-config.ts';
import { isWhiteout, lstatOrUndefined } from './layers/lower-layers.ts';
import { isMissing, type StoredImage, type StoreLayout, temporaryName } from './layout.ts';

const run = promisify(execFile);
const BIG = 64 * 1024 ** 2;

export interface ExportedImage {
  readonly image: StoredImage;
  readonly names: readonly string[];
}

/** Throws RuntimeError 'image-pull'. After a failure there is no file at `path`. */
export async function exportImages(
  layout: StoreLayout,
  images: readonly ExportedImage[],
  path: string,
  architecture: string,
  onProgress?: OnProgress,
): Promise<void> {
  const work = join(layout.tmp, temporaryName(layout));
  // Never overwrites an existing file.
  const file = await open(path, 'wx', 0o600).catch((error: unknown) => {
    throw new RuntimeError('image-pull', `${path}: ${messageOf(error)}; give a file that does not exist`);
  });
  await file.close();
  try {
    await mkdir(work, { mode: 0o700 });
    const diffIds = new Map<string, string>();
    // Progress in bytes of packed layers. A layer that several images share is packed only once, so `done` may end
    // below `total`.
    const packed = adding(
      images.reduce((sum, { image }) => sum + image.sizeBytes, 0),
      onProgress,
    );
    for (const chain of new Set(images.flatMap(({ image }) => image.layers))) {
      diffIds.set(chain, await packLayer(join(layout.layers, chain), work, chain, packed));
    }
    const manifest = [];
    for (const { image, names } of images) {
      const chains = image.layers.toReversed();
      const config = configOf(
        image,
        chains.map((chain) => diffIds.get(chain) ?? ''),
        architecture,
      );
      const name = `${sha256Hex(config)}.json`;
      await writeFile(join(work, name), config);
      manifest.push({ Config: name, RepoTags: names, Layers: chains.map((chain) => `${chain}.tar`) });
    }
    await writeFile(join(work, 'manifest.json'), JSON.stringify(manifest));
    await run('tar', ['-cf', path, '--owner=0', '--group=0', '--mode=0644', '-C', work, ...(await readdir(work))]);
  } catch (error) {
    await rm(path, { force: true });
    throw error instanceof RuntimeError ? error : new RuntimeError('image-pull', `export: ${messageOf(error)}`);
  } finally {
    await layout.trees.remove(work);
  }
}

/** Packs a layer into `<chain>.tar` in `work` and returns its digest. */
async function packLayer(root: string, work: string, chain: string, onBytes: (bytes: number) => void): Promise<string> {
  const tar = join(work, `${chain}.tar`);
  const found = await walk(root);
  const lists = { members: join(work, 'members'), whiteouts: join(work, 'whiteouts') };
  await writeFile(lists.members, found.members.map((name) => `./${name}\0`).join(''));
  const common = ['--no-recursion', '--null', '--verbatim-files-from', '--numeric-owner', '--xattrs'];
  const attributes = ['--xattrs-include=security.capability', '--xattrs-include=user.*'];
  await run('tar', ['-cf', tar, '-C', root, '--format=pax', ...common, ...attributes, '-T', lists.members], {
    maxBuffer: BIG,
  });
  if (found.whiteouts.length > 0) {
    const marks = join(work, `${chain}.whiteouts`);
    for (const name of found.whiteouts) {
      const slash = name.lastIndexOf('/') + 1;
      await mkdir(join(marks, name.slice(0, slash)), { recursive: true });
      await writeFile(join(marks, `${name.slice(0, slash)}.wh.${name.slice(slash)}`), '');
    }
    const marked = found.whiteouts.map((name) => `./${name.replace(/([^/]+)$/, '.wh.$1')}\0`);
    await writeFile(lists.whiteouts, marked.join(''));
    await run('tar', ['-rf', tar, '-C', marks, '--format=pax', ...common, '-T', lists.whiteouts]);
    await rm(marks, { recursive: true });
  }
  await rm(lists.members);
  await rm(lists.whiteouts, { force: true });
  const hash = createHash('sha256');
  for await (const chunk of counted(createReadStream(tar), onBytes)) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}

/** All members below `root`, parents first, without following links. */
async function walk(root: string): Promise<{ members: string[]; whiteouts: string[] }> {
  const members: string[] = [];
  const whiteouts: string[] = [];
  const visit = async (below: string): Promise<void> => {
    for (const name of (await readdir(join(root, below))).sort()) {
      const path = below === '' ? name : `${below}/${name}`;
      const found = await lstatOrUndefined(join(root, path));
      if (found === undefined) continue;
      if (isWhiteout(found)) whiteouts.push(path);
      else members.push(path);
      if (found.isDirectory()) await visit(path);
    }
  };
  await stat(root).catch((error: unknown) => {
    throw isMissing(error) ? new RuntimeError('image-not-found', `layer ${root} is missing`) : error;
  });
  await visit('');
  return { members, whiteouts };
}

/** The image's configuration with the digests of the newly packed layers. */
function configOf({ raw, config }: StoredImage, diffIds: readonly string[], architecture: string): string {
  const rootfs = { type: 'layers', diff_ids: diffIds };
  if (raw !== undefined) return JSON.stringify({ ...objectOf(JSON.parse(raw)), rootfs });
  return JSON.stringify({
    architecture,
    os: 'linux',
    config: {
      Entrypoint: config.entrypoint,
      Cmd: config.cmd,
      Env: config.env,
      WorkingDir: config.workingDir,
      User: config.user,
      ...(config.stopSignal === '' ? {} : { StopSignal: config.stopSignal }),
    },
    rootfs,
  });
}
