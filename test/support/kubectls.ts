/**
 * kubectl programs on this machine: the installed one; Debian's 1.20, if the test run has fetched it
 * (`test/runner/host.ts`) or `KUBECTL_120` names it; and the one that `HYPEREDGE_KUBECTL` names. Tests run with each
 * program. Missing programs are printed once per process with the reason.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface Kubectl {
  readonly label: 'installed' | '1.20' | 'named';
  readonly path: string;
}

/** Path to which the test run fetches Debian's kubectl 1.20. */
export const FETCHED_KUBECTL_120 = join(import.meta.dirname, '../../dist/test-tools/kubectl-1.20');

const NAMED = process.env['HYPEREDGE_KUBECTL'];

const CANDIDATES: readonly (Kubectl & { readonly mend: string })[] = [
  { label: 'installed', path: '/usr/bin/kubectl', mend: 'install kubectl' },
  {
    label: '1.20',
    path: process.env['KUBECTL_120'] ?? FETCHED_KUBECTL_120,
    mend: 'the whole test run fetches it, or name one in KUBECTL_120',
  },
  ...(NAMED === undefined
    ? []
    : [{ label: 'named' as const, path: NAMED, mend: 'HYPEREDGE_KUBECTL has to be the path of a kubectl' }]),
];

let found: readonly Kubectl[] | undefined;

/** Available programs. The installed kubectl comes first. */
export function kubectls(): readonly Kubectl[] {
  found ??= CANDIDATES.filter(({ label, path, mend }) => {
    const isHere = existsSync(path);
    if (!isHere) console.log(`left out: kubectl (${label}): ${path} is not here; ${mend}`);
    return isHere;
  });
  return found;
}
