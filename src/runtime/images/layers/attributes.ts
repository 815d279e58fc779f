/**
 * Extended attributes, which Node can neither set nor read. They are set through an open descriptor, and read from pax
 * archives that GNU tar creates.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { extract } from 'tar-stream';
import { messageOf } from '../../../base/errors.ts';
import { attributesOf, captureAttributes } from './extended-headers.ts';

export type Attributes = ReadonlyMap<string, Buffer>;

/** Number of the first descriptor that is passed to a program. */
const FIRST_PASSED = 3;
const INCLUDED = ['--xattrs-include=security.capability', '--xattrs-include=user.*'];
const STDERR_BYTES = 4096;

/** Sets attributes of the file behind `fd`, which may be an O_PATH descriptor. Rejects if one of them cannot be set. */
export async function setAttributes(fd: number, attributes: Attributes): Promise<void> {
  for (const [name, value] of attributes) {
    try {
      const target = `/proc/self/fd/${FIRST_PASSED}`;
      await runWith([fd], 'setfattr', ['-n', name, '-v', `0x${value.toString('hex')}`, '--', target]);
    } catch (error) {
      // The packaged executables contain setfattr. A start from source on a host without it falls back to tar.
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      await copyAttribute(fd, name, value);
    }
  }
}

/**
 * Sets an attribute without setfattr: tar creates an empty file with the attribute, and cp copies the attribute to
 * `fd`.
 */
async function copyAttribute(fd: number, name: string, value: Buffer): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'hyperedge-attribute-'));
  try {
    const archive = Buffer.concat([paxBlocks(name, value), blocksOf('a', '0', Buffer.alloc(0)), Buffer.alloc(1024)]);
    const warnings = await runWith([], 'tar', ['-C', scratch, '--xattrs', '--xattrs-include=*', '-xpf', '-'], archive);
    // tar reports an attribute that cannot be set only as a warning.
    if (warnings !== '') throw new Error(warnings);
    const target = `/proc/self/fd/${FIRST_PASSED}`;
    await runWith([fd], 'cp', ['--attributes-only', '--preserve=xattr', join(scratch, 'a'), target]);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function paxBlocks(name: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` SCHILY.xattr.${name}=`), value, Buffer.from('\n')]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return blocksOf('pax', 'x', Buffer.concat([Buffer.from(String(length)), rest]));
}

function blocksOf(name: string, type: string, content: Buffer): Buffer {
  const blocks = Buffer.alloc(512 + Math.ceil(content.length / 512) * 512);
  blocks.write(name, 0);
  blocks.write('0000600\0', 100);
  blocks.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
  blocks.write('00000000000\0        ', 136);
  blocks.write(type, 156);
  blocks.write('ustar\x0000', 257, 'latin1');
  const sum = blocks.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  blocks.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  content.copy(blocks, 512);
  return blocks;
}

/** Attributes of files and directories below `root` that have any. Links are not followed. */
export async function readAttributes(
  root: string,
  paths: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, Buffer>>> {
  const found = new Map<string, Attributes>();
  if (paths.length === 0) return found;
  const list = paths.map((path) => `./${path}\0`).join('');
  const options = ['--format=pax', '--hard-dereference', '--no-recursion', '--null', '--verbatim-files-from'];
  const child = spawn('tar', ['-cf', '-', '-C', root, '--xattrs', ...INCLUDED, ...options, '-T', '-'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ended = endOf(child, 'tar');
  // A child that could not be started for lack of file descriptors has no streams.
  if (child.pid === undefined) await ended;
  child.stdin.on('error', () => {});
  child.stdin.end(list);
  const parser = extract();
  captureAttributes(parser);
  child.stdout.pipe(parser);
  ended.catch((error: unknown) => parser.destroy(error instanceof Error ? error : new Error(String(error))));
  for await (const entry of parser) {
    const attributes = attributesOf(entry.header);
    const path = entry.header.name.replace(/^\.\//, '').replace(/\/$/, '');
    if (attributes.size > 0) found.set(path, attributes);
    entry.resume();
  }
  await ended;
  return found;
}

/** Runs a program with the given descriptors as /proc/self/fd/3 and up. Resolves with its warnings. */
export async function runWith(
  fds: readonly number[],
  program: string,
  args: readonly string[],
  input?: Buffer,
): Promise<string> {
  const child = spawn(program, args, { stdio: [input === undefined ? 'ignore' : 'pipe', 'ignore', 'pipe', ...fds] });
  // A program that exits early reports the reason itself.
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  return endOf(child, program);
}

/** Resolves with the program's standard error. */
function endOf(child: ReturnType<typeof spawn>, program: string): Promise<string> {
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = `${stderr}${text}`.slice(0, STDERR_BYTES);
  });
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(Object.assign(new Error(`${program}: ${messageOf(error)}`), codeOf(error))));
    child.on('close', (code, signal) => {
      if (code === 0) resolve(stderr.trim());
      else
        reject(
          new Error(
            `${program}: ${stderr.trim() === '' ? `ended with ${code === null ? signal : `exit code ${code}`}` : stderr.trim()}`,
          ),
        );
    });
  });
}

const codeOf = (error: object): { readonly code?: unknown } => ('code' in error ? { code: error.code } : {});
