import { readdir, readFile } from 'node:fs/promises';
import type { ProcessFacts } from '../../../base/linux/process-facts.ts';

const textOf = (name: string): Promise<string> => readFile(`/proc/self/${name}`, 'utf8').catch(() => '');

export const processFacts: ProcessFacts = {
  openFiles: () =>
    readdir('/proc/self/fd').then(
      (names) => names.length,
      () => undefined,
    ),
  limits: () => textOf('limits'),
  status: () => textOf('status'),
};
