/**
 * Imports images from the drop directory, and verifies stored images after a boot. Both run in a child process with low
 * priority, so that they delay neither the node's readiness nor the event loop.
 */
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { EventRecorder } from '../../client/index.ts';
import type { ImageStore } from '../../runtime/images/index.ts';
import type { Settings } from '../config/settings.ts';
import { runOwnCommand } from '../process/own-command.ts';

const CHILD_MS = 3_600_000;
const ARCHIVE = /^[^.].*\.tar(?:\.gz|\.zst|\.zstd)?$|^[^.].*\.(?:tgz|tzst)$/;

/**
 * Imported files by name, with time stamp and image names. The record is stored, so that a restart imports only changed
 * files.
 */
type Imported = Record<string, { readonly stamp: string; readonly names: readonly string[] }>;

export interface ImageDrops {
  readonly settings: Settings;
  readonly images: ImageStore;
  readonly nodeName: NodeName;
  readonly recorder: EventRecorder;
  readonly log: Log;
}

/** Starts the import and, after a boot, the verification of stored images. Returns a function that stops both. */
export function startImageWork(drops: ImageDrops): () => Promise<void> {
  const abort = new AbortController();
  const work = (async () => {
    await importDropped(drops, abort.signal);
    if (drops.settings.embedded.images.verifyAtBoot) await verifyAfterBoot(drops, abort.signal);
  })().catch((error: unknown) => {
    if (!abort.signal.aborted) drops.log.warn('import or verification of images stopped', { error: messageOf(error) });
  });
  return async () => {
    abort.abort();
    await work;
  };
}

async function importDropped(drops: ImageDrops, signal: AbortSignal): Promise<void> {
  const { settings, images, log } = drops;
  const { directory } = settings.embedded.images;
  if (directory === undefined) return;
  const names = await readdir(directory).catch(() => []);
  const archives = names.filter((name) => ARCHIVE.test(name)).sort();
  if (archives.length === 0) return;
  const record = join(settings.paths.images, 'dropped.json');
  const known = await readRecord(record);
  for (const name of archives) {
    if (signal.aborted) return;
    const path = join(directory, name);
    try {
      const { size, mtimeMs, ino } = await stat(path);
      const stamp = `${ino}:${size}:${mtimeMs}`;
      const before = Object.hasOwn(known, name) ? known[name] : undefined;
      if (before?.stamp === stamp && (await allPresent(images, before.names))) continue;
      const began = performance.now();
      const imported = namesOf(
        await runOwnCommand(['image', 'import', '--root', settings.root, path, '-o', 'json'], signal, CHILD_MS),
      );
      // Imported images are pinned, so that they are kept when the disk is full. Their registry may not be reachable.
      for (const image of imported) await images.pin(image, true);
      known[name] = { stamp, names: imported };
      await writeRecord(record, known);
      log.info('images imported from the drop directory', {
        file: name,
        images: imported.join(','),
        ms: Math.round(performance.now() - began),
      });
    } catch (error) {
      if (signal.aborted) return;
      log.error('image not imported from the drop directory', { file: name, error: messageOf(error) });
      report(drops, 'ImageImportFailed', `${path}: ${messageOf(error)}`);
    }
  }
}

async function allPresent(images: ImageStore, names: readonly string[]): Promise<boolean> {
  const found = await Promise.all(names.map((name) => images.status(name)));
  return found.every((each) => each !== undefined);
}

/** Verifies stored images once per boot of the machine, because a power failure can damage files. */
async function verifyAfterBoot(drops: ImageDrops, signal: AbortSignal): Promise<void> {
  const { settings, log } = drops;
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  const mark = join(settings.paths.images, 'verified-boot');
  const last = await readFile(mark, 'utf8').catch(() => '');
  if (last === boot) return;
  try {
    await runOwnCommand(['image', 'verify', '--root', settings.root], signal, CHILD_MS);
  } catch (error) {
    if (signal.aborted) return;
    log.error('stored images are damaged', { error: messageOf(error) });
    report(drops, 'ImageDamaged', `${messageOf(error)}; remove the image and import or pull it again`);
  }
  await mkdir(settings.paths.images, { recursive: true });
  await writeFile(mark, boot);
}

function report({ nodeName, recorder }: ImageDrops, reason: string, message: string): void {
  const node = { apiVersion: 'v1', kind: resources.nodes.kind, metadata: { name: nodeName, uid: nodeName } };
  recorder.event(node, 'Warning', reason, message.slice(0, 1000));
}

function namesOf(output: string): string[] {
  const value: unknown = JSON.parse(output);
  return (Array.isArray(value) ? value : []).flatMap((each: { names?: unknown }) =>
    Array.isArray(each.names) ? each.names.filter((name) => typeof name === 'string') : [],
  );
}

async function readRecord(path: string): Promise<Imported> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    return typeof value === 'object' && value !== null ? (value as Imported) : {};
  } catch {
    return {};
  }
}

async function writeRecord(path: string, record: Imported): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(`${path}.new`, JSON.stringify(record));
  await rename(`${path}.new`, path);
}
