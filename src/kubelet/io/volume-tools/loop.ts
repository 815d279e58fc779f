import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { run } from './run-tool.ts';

export async function makeImage(path: string, bytes: number): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o711 });
  const file = await open(path, 'a', 0o600);
  try {
    if ((await file.stat()).size < bytes) await file.truncate(bytes);
  } finally {
    await file.close();
  }
}

async function devicesOf(file: string): Promise<string[]> {
  const text = await run('losetup', ['--associated', file, '--noheadings', '--output', 'NAME']);
  return text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
}

export async function attachLoop(file: string, { readOnly }: { readonly readOnly: boolean }): Promise<string> {
  const [present] = await devicesOf(file);
  if (present !== undefined) return present;
  const text = await run('losetup', ['--find', '--show', ...(readOnly ? ['--read-only'] : []), file]);
  return text.trim();
}

export async function resizeLoop(file: string): Promise<void> {
  for (const device of await devicesOf(file)) await run('losetup', ['--set-capacity', device]);
}

export async function detachLoop(file: string): Promise<void> {
  for (const device of await devicesOf(file)) await run('losetup', ['--detach', device]);
}
