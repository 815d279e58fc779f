/**
 * The process description of an exec: the container's own with another command. It is assembled from text that is
 * cached for each container, because parsing an environment of a megabyte for every probe would block the event loop.
 */
import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecOptions } from '../../port.ts';
import type { OciProcess } from '../spec/spec.ts';

/** Cached text: all fields except `terminal` and `args`, from after the opening brace to the last variable of `env`. */
const REST = 'exec-rest.json';
const TERM = 'TERM=xterm';

/** Writes the process description to `file`, for a container with this bundle. */
export async function writeExecProcess(
  file: string,
  bundle: string,
  { command, tty }: Pick<ExecOptions, 'command' | 'tty'>,
): Promise<void> {
  const rest = await readFile(join(bundle, REST)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return makeRest(bundle);
  });
  const head = `{"terminal":${tty},"args":${JSON.stringify(command)},`;
  const tail = tty && !rest.includes('"TERM=') ? `,${JSON.stringify(TERM)}]}` : ']}';
  await writeFile(file, Buffer.concat([Buffer.from(head), rest, Buffer.from(tail)]), { mode: 0o600 });
}

async function makeRest(bundle: string): Promise<Buffer> {
  const spec: { process: OciProcess } = JSON.parse(await readFile(join(bundle, 'config.json'), 'utf8'));
  const { terminal: _, args: __, env, ...fields } = spec.process;
  // The runtime adds PATH to every environment, so there is always a variable before the comma.
  const text = `${JSON.stringify(fields).slice(1, -1)},"env":${JSON.stringify(env).slice(0, -1)}`;
  const temporary = join(bundle, `.${REST}.${randomBytes(6).toString('hex')}`);
  await writeFile(temporary, text, { mode: 0o600 });
  await rename(temporary, join(bundle, REST));
  return Buffer.from(text);
}
