/**
 * Unpacks the archive that `cp` receives from a container. The archive is untrusted: only regular files and directories
 * below the requested name are written, so nothing outside of the target changes. Source: k8s.io/kubectl/pkg/cmd/cp.
 */
import { constants } from 'node:fs';
import { mkdir, open, realpath } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract, type Header } from 'tar-stream';
import { ignore, messageOf } from '../../base/errors.ts';
import { ClientError } from '../../kubectl/core/errors.ts';
import type { UnpackOptions } from '../../kubectl/port.ts';

const PERMISSIONS = 0o777;
const DEFAULT_MODE = 0o644;

/**
 * Unpacks an archive. Throws ClientError for an entry that is not below the requested name, and for a file that cannot
 * be written.
 */
export async function unpack(input: AsyncIterable<Uint8Array>, options: UnpackOptions): Promise<void> {
  const entries = extract();
  let damage: unknown;
  entries.once('error', (error) => {
    damage ??= error;
  });
  const reading = pipeline(Readable.from(input), entries);
  reading.catch(ignore('the loop reports it'));
  try {
    for await (const entry of entries) {
      await write(entry.header, entry, options);
      entry.resume();
    }
    await reading;
  } catch (error) {
    entries.destroy();
    if (error instanceof ClientError) throw error;
    throw new ClientError(`${options.target}: ${messageOf(damage ?? error)}`);
  }
}

async function write(header: Header, content: AsyncIterable<unknown>, options: UnpackOptions): Promise<void> {
  const { target } = options;
  const inner = innerPath(header.name, options.member);
  const path = join(target, ...inner);
  switch (header.type) {
    case 'directory':
      await makeDirectory(target, inner);
      return;
    case 'file':
    case 'contiguous-file': {
      if (inner.length === 0) await mkdir(dirname(target), { recursive: true });
      else await makeDirectory(target, inner.slice(0, -1));
      // The target itself may be a link that the user has named. Links below the target are not followed.
      const follow = inner.length === 0 ? 0 : constants.O_NOFOLLOW;
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | follow;
      const mode = options.keepMode ? (header.mode ?? DEFAULT_MODE) & PERMISSIONS : DEFAULT_MODE;
      const file = await open(path, flags, mode);
      try {
        for await (const chunk of content) await file.writeFile(chunk as Uint8Array);
      } finally {
        await file.close();
      }
      return;
    }
    default:
      options.onSkip(header.type ?? 'entry', header.name, header.linkname ?? '');
  }
}

/** Path components of an entry relative to the requested name. Throws ClientError for an entry outside of it. */
function innerPath(name: string, member: string): readonly string[] {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  const wanted = member.split('/').filter((part) => part !== '' && part !== '.');
  const isBelow = wanted.every((part, index) => parts[index] === part);
  if (!isBelow || parts.includes('..') || name.startsWith('/') || name.includes('\0'))
    throw new ClientError(
      `the container sent a file outside of the requested one: ${JSON.stringify(name)}; nothing outside was written`,
    );
  return parts.slice(wanted.length);
}

/** Creates a directory below the target, or the target. Throws ClientError if a link leads out of the target. */
async function makeDirectory(target: string, inner: readonly string[]): Promise<void> {
  if (inner.length === 0) {
    await mkdir(target, { recursive: true });
    return;
  }
  const directory = join(target, ...inner);
  const real = await realpath(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (real === undefined) {
    // The parent is checked before a directory is created in it.
    await makeDirectory(target, inner.slice(0, -1));
    await mkdir(directory);
    return;
  }
  const root = await realpath(target);
  if (real !== root && !real.startsWith(root.endsWith(sep) ? root : root + sep))
    throw new ClientError(`${directory}: is a link that leads out of ${target}; remove it and copy again`);
}
