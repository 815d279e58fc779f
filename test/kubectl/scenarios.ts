/** Scenarios beside the calls of `calls.ts`, and the directory with their files. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { APPLY_SET_SCENARIO } from './apply-set-calls.ts';
import type { Scenario } from './calls.ts';
import { DAILY_SCENARIO } from './daily-calls.ts';
import { DEBUG_SCENARIO } from './debug-calls.ts';
import { DESCRIBE_SCENARIO } from './describe-calls.ts';
import { KUSTOMIZE_SCENARIO } from './kustomize-calls.ts';
import { MISTAKES_SCENARIO } from './mistake-calls.ts';
import { VERBS_SCENARIO } from './verb-calls.ts';

export const SCENARIOS: readonly Scenario[] = [
  VERBS_SCENARIO,
  KUSTOMIZE_SCENARIO,
  DEBUG_SCENARIO,
  APPLY_SET_SCENARIO,
  DAILY_SCENARIO,
  DESCRIBE_SCENARIO,
  MISTAKES_SCENARIO,
];

/** Writes the files below the directory. */
export async function writeFiles({ files }: Scenario, directory: string): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content, { mode: name.startsWith('bin/') ? 0o755 : 0o644 });
  }
}

export const callsOf = ({ calls }: Scenario): readonly string[] => calls.trim().split('\n');
