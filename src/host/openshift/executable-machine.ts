import { open } from 'node:fs/promises';
import type { Architecture } from '../../api/releases/manifest.ts';
import { CodedError } from '../../base/errors.ts';

/** Values of e_machine in the ELF header. Source: elf(5). */
const MACHINES: Readonly<Record<Architecture, number>> = { x64: 62, arm64: 183 };
const MACHINE_OFFSET = 18;

/** Throws CodedError 'bad-executable' if the file is not an executable for the architecture. */
export async function checkMachine(path: string, architecture: Architecture): Promise<void> {
  const file = await open(path, 'r');
  const header = Buffer.alloc(MACHINE_OFFSET + 2);
  await file.read(header, 0, header.length, 0).finally(() => file.close());
  const isElf = header.subarray(0, 4).toString('latin1') === '\u007fELF';
  if (!isElf || header.readUInt16LE(MACHINE_OFFSET) !== MACHINES[architecture])
    throw new CodedError('bad-executable', `--${architecture}: ${path} is not an executable for ${architecture}`);
}
