/**
 * Runs the `cases` that every file below `cases` exports: attacks on one appliance with the packaged executable. `npm
 * run test:attack`.
 */
import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { AttackLab } from './lab.ts';
import type { AttackCase } from './port.ts';

const CASE_TIMEOUT_MS = 120_000;
const directory = join(import.meta.dirname, 'cases');
const cases: AttackCase[] = [];
for await (const file of glob('*.ts', { cwd: directory }))
  cases.push(...((await import(join(directory, file))) as { readonly cases: readonly AttackCase[] }).cases);
cases.sort((left, right) => left.finding - right.finding);

let lab: AttackLab;
before(
  async () => {
    lab = await AttackLab.create();
  },
  { timeout: 90_000 },
);
after(() => lab?.stop(), { timeout: 90_000 });

function suite(name: string, concurrency: number, chosen: readonly AttackCase[]): void {
  describe(name, { concurrency }, () => {
    for (const each of chosen)
      test(`${each.finding}: ${each.title}`, { timeout: each.timeoutMs ?? CASE_TIMEOUT_MS }, () => each.attack(lab));
  });
}

suite(
  'attacks',
  4,
  cases.filter((each) => each.exclusive !== true),
);
suite(
  'attacks that need an exclusive appliance',
  1,
  cases.filter((each) => each.exclusive === true),
);
